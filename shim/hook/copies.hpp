// Wrappers for every libcuda of the process but the first. Each copy of the driver has a state of its own,
// so a call of one must reach that very one: it is counted and passed on, nothing more. They run on threads
// of another libc than ours (a namespace of dlmopen), where the locale tables of ours were never set up
// (measured: std::tolower there ends the process): no libc on their way.
#pragma once

#include "shim/hook/entries.hpp"

namespace tidepool {

extern void* const copy_wrappers[kCopies - 1][kHookCount];

}  // namespace tidepool
