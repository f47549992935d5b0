// The two sides of each hook. Compiled without sanitizers: used inside dlsym, see elf.hpp.
#include "shim/hook/entries.hpp"

#include "shim/hook/copies.hpp"

namespace tidepool {
namespace {

void* const kWrappers[] = {
#define HOOK(symbol, family, version) reinterpret_cast<void*>(&::symbol),
#include "shim/hook/hooks.def"
};

constexpr const char* kPerThread = "_ptsz";

// "_v2_ptsz" after "cuMemAlloc": an ABI of the base name, of the wanted stream flavour.
bool is_abi_suffix(const char* suffix, bool per_thread_stream) {
  if (suffix[0] == '_' && suffix[1] == 'v' && suffix[2] >= '0' && suffix[2] <= '9') suffix += 3;
  return elf::equal(suffix, per_thread_stream ? kPerThread : "");
}

}  // namespace

constinit Copy copies[kCopies] = {};

void* wrapper_of(std::size_t index, std::size_t copy) {
  return copy == kDriver ? kWrappers[index] : copy_wrappers[copy - 1][index];
}

void* wrapper_for_address(const void* address, std::size_t copy) {
  for (std::size_t i = 0; i < kHookCount; ++i)
    if (copies[copy].entries[i].load(std::memory_order_acquire) == address) return wrapper_of(i, copy);
  return nullptr;
}

int hook_for_base_name(const char* base, int cuda_version, bool per_thread_stream) {
  int best = -1;
  for (std::size_t i = 0; i < kHookCount; ++i) {
    if (kHooks[i].version > cuda_version || !elf::starts_with(kHooks[i].symbol, base)) continue;
    const char* suffix = kHooks[i].symbol;
    for (const char* rest = base; *rest != '\0'; ++rest) ++suffix;
    if (!is_abi_suffix(suffix, per_thread_stream)) continue;
    if (best < 0 || kHooks[i].version >= kHooks[best].version) best = static_cast<int>(i);
  }
  return best;
}

bool is_hook_name(const char* name) {
  for (const HookRow& row : kHooks)
    if (elf::equal(row.symbol, name)) return true;
  return false;
}

}  // namespace tidepool
