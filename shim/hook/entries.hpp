// The two sides of each hook: our wrapper and the driver's own entry.
#pragma once

#include <atomic>

#include "shim/hook/hooks.hpp"

namespace tidepool {

// The driver's entries by hook, saved before its table is changed. Null: this driver lacks the entry.
extern constinit std::atomic<void*> real_entries[kHookCount];

void* wrapper_of(std::size_t index);

// The wrapper for an address that the driver gave, or null if it is not a hooked entry. An address
// that is already a wrapper is not the driver's: it gives null too.
void* wrapper_for_address(const void* address);

// The hook that `base` means for a program built for `cuda_version`, by the version column; -1 if none.
// Only for drivers that answer cuGetProcAddress with addresses that they do not export.
int hook_for_base_name(const char* base, int cuda_version, bool per_thread_stream);

// Is `name` a hooked symbol?
bool is_hook_name(const char* name);

}  // namespace tidepool
