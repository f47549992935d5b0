// The two sides of each hook: our wrapper and the driver's own entry, for each libcuda of the process.
//
// Copy 0 is the driver: its calls are served. A process can have more (a namespace of dlmopen has its own,
// seen through the audit companion); each needs wrappers and saved entries of its own, see copies.cpp.
#pragma once

#include <atomic>

#include "shim/hook/elf.hpp"
#include "shim/hook/hooks.hpp"

namespace tidepool {

struct Copy {
  // By hook, saved before the library's table is changed. Null: it lacks the entry.
  std::atomic<void*> entries[kHookCount];
  // What was adopted; base 0: nothing. Written under the adoption lock, before `adopted`.
  elf::Library library;
  std::atomic<bool> adopted{false};
};

inline constexpr std::size_t kDriver = 0;
inline constexpr std::size_t kCopies = 4;
extern constinit Copy copies[kCopies];

void* wrapper_of(std::size_t index, std::size_t copy = kDriver);

// The wrapper for an address that a libcuda gave, or null if it is not a hooked entry of it. An address
// that is already a wrapper is not the driver's: it gives null too.
void* wrapper_for_address(const void* address, std::size_t copy = kDriver);

// The hook that `base` means for a program built for `cuda_version`, by the version column; -1 if none.
// Only for drivers that answer cuGetProcAddress with addresses that they do not export.
int hook_for_base_name(const char* base, int cuda_version, bool per_thread_stream);

// Is `name` a hooked symbol?
bool is_hook_name(const char* name);

}  // namespace tidepool
