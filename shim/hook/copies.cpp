// Wrappers for every libcuda of the process but the first, made from the table.
#include "shim/hook/copies.hpp"

#include <locale.h>

#include "shim/hook/lookup_answer.hpp"
#include "shim/hook/passage.hpp"

namespace tidepool {
namespace {

template <std::size_t copy, Hook hook, typename... Parameters>
CUresult count_and_pass(Parameters... parameters) {
  const Reentry entry;
  auto* function = reinterpret_cast<CUresult (*)(Parameters...)>(
      copies[copy].entries[index_of(hook)].load(std::memory_order_acquire));
  if (function == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  // A libcuda that forwards to another one has been counted at the first.
  if (entry.outermost()) {
    tally::add(intercepted_slot(hook));
    if (!kHooks[index_of(hook)].passed_first)
      tally::add(forwarded_slot(hook));
  }
  return function(parameters...);
}

// A thread that another namespace's libc has started has no character tables in ours; setting its locale,
// to what it is, sets them up.
void prepare_thread() { uselocale(uselocale(nullptr)); }

template <std::size_t copy, Hook hook, typename Signature = typename SignatureOf<hook>::type>
struct CopyWrapper;

template <std::size_t copy, Hook hook, typename... Parameters>
struct CopyWrapper<copy, hook, CUresult(Parameters...)> {
  static CUresult call(Parameters... parameters) { return count_and_pass<copy, hook>(parameters...); }
};

// Without a call to the first libcuda nobody else would build the runtime that reports of these.
template <std::size_t copy>
struct CopyWrapper<copy, Hook::cuInit, CUresult(unsigned)> {
  static CUresult call(unsigned flags) {
    const CUresult result = count_and_pass<copy, Hook::cuInit>(flags);
    if (result != CUDA_SUCCESS) return result;
    prepare_thread();
    start_reporting();
    return result;
  }
};

template <std::size_t copy>
struct CopyWrapper<copy, Hook::cuGetProcAddress, CUresult(const char*, void**, int, cuuint64_t)> {
  static CUresult call(const char* symbol, void** pfn, int version, cuuint64_t flags) {
    const CUresult result = count_and_pass<copy, Hook::cuGetProcAddress>(symbol, pfn, version, flags);
    if (result == CUDA_SUCCESS && pfn != nullptr) *pfn = replace_answer(copy, symbol, *pfn, version, flags);
    return result;
  }
};

template <std::size_t copy>
struct CopyWrapper<copy, Hook::cuGetProcAddress_v2,
                   CUresult(const char*, void**, int, cuuint64_t, CUdriverProcAddressQueryResult*)> {
  static CUresult call(const char* symbol, void** pfn, int version, cuuint64_t flags,
                       CUdriverProcAddressQueryResult* status) {
    const CUresult result =
        count_and_pass<copy, Hook::cuGetProcAddress_v2>(symbol, pfn, version, flags, status);
    if (result == CUDA_SUCCESS && pfn != nullptr) *pfn = replace_answer(copy, symbol, *pfn, version, flags);
    return result;
  }
};

}  // namespace

// Written out, so that the table is made by the linker and not at every start of every process.
void* const copy_wrappers[kCopies - 1][kHookCount] = {
    {
#define HOOK(symbol, family, version) reinterpret_cast<void*>(&CopyWrapper<1, Hook::symbol>::call),
#include "shim/hook/hooks.def"
    },
    {
#define HOOK(symbol, family, version) reinterpret_cast<void*>(&CopyWrapper<2, Hook::symbol>::call),
#include "shim/hook/hooks.def"
    },
    {
#define HOOK(symbol, family, version) reinterpret_cast<void*>(&CopyWrapper<3, Hook::symbol>::call),
#include "shim/hook/hooks.def"
    },
};

}  // namespace tidepool
