// Error codes of cuda.h by number and by name.
#pragma once
#include <cuda.h>

namespace sim {

const char* error_name(CUresult code);  // null: no such error
const char* error_text(CUresult code);
bool error_by_name(const char* name, CUresult* code);

}  // namespace sim
