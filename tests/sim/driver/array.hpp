// What the end of a context has to know of arrays; the rest is in entry_array.cpp.
#pragma once

namespace sim {

struct Context;

// Frees the context's arrays and mipmapped arrays (cuda.h, cuCtxDestroy).
void destroy_arrays(const Context* context);

}  // namespace sim
