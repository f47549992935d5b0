// What a program gets when it asks the driver itself for an entry.
#pragma once

#include "shim/hook/entries.hpp"

namespace tidepool {

// The driver's answer to cuGetProcAddress, with a hooked entry replaced by our wrapper for that very
// symbol: which version and which stream flavour a program gets stays the driver's choice.
void* replace_answer(std::size_t copy, const char* base, void* answer, int cuda_version, cuuint64_t flags);

}  // namespace tidepool
