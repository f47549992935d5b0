// What every wrapper does around its one line: count the application's call, find the router, keep our
// own faults from the application.
//
//   forward<Hook::cuX>(args...)                    counted and passed on
//   pass_first<Hook::cuX>(args...)                 counted and passed on, looked at only on failure
//   serve<Hook::cuX, &Router::x>(args...)          the router decides, by a function of the same arguments
//   serve<Hook::cuX>([&](Router&, const Pass&) { ... }, args...)          or of others
#pragma once

#include <cxxabi.h>

#include <atomic>
#include <optional>

#include "shim/base/reentry.hpp"
#include "shim/base/tally.hpp"
#include "shim/hook/adoption.hpp"
#include "shim/hook/entries.hpp"
#include "shim/hook/stand_in.hpp"
#include "shim/runtime.hpp"

namespace tidepool {

inline constexpr std::size_t intercepted_slot(Hook hook) { return tally::kHookSlots + 2 * index_of(hook); }
inline constexpr std::size_t forwarded_slot(Hook hook) { return intercepted_slot(hook) + 1; }
static_assert(tally::kHookSlots + 2 * kHookCount <= tally::kDriverSlots);

extern const HookSide kHookSide;

// The driver is at work: from here on the process has a report.
void start_reporting() noexcept;

// Once per process, on the log.
void warn_of_own_fault(const char* entry) noexcept;

// The driver's own entry, null where the process has no driver or that one lacks it.
template <Hook hook>
auto* driver_entry() {
  void* entry = copies[kDriver].entries[index_of(hook)].load(std::memory_order_acquire);
  if (entry == nullptr) entry = real_entry(hook);
  return reinterpret_cast<typename SignatureOf<hook>::type*>(entry);
}

// CUDA_ERROR_NOT_INITIALIZED where the process has no driver: what a driver that was never started says.
template <Hook hook, typename... Args>
CUresult call_driver(Args... args) {
  auto* entry = driver_entry<hook>();
  return entry == nullptr ? CUDA_ERROR_NOT_INITIALIZED : entry(args...);
}

// The same for a call from outside the shim: without a driver it is for the program's own stub, if there is
// one. That loads the driver and calls it, by a wrapper of ours which is then no longer the outermost.
template <Hook hook, typename... Args>
CUresult call_driver_or_stand_in(Args... args) {
  auto* entry = driver_entry<hook>();
  if (entry == nullptr) entry = reinterpret_cast<typename SignatureOf<hook>::type*>(stand_in(hook));
  return entry == nullptr ? CUDA_ERROR_NOT_INITIALIZED : entry(args...);
}

template <Hook hook, typename Serve, typename... Args>
CUresult serve(const Serve& serve_call, Args... args) {
  const Reentry entry;
  // A driver that calls an exported name while it serves us means itself.
  if (!entry.outermost()) return call_driver<hook>(args...);
  std::optional<CUresult> answer;
  const auto pass = [&] {
    tally::add(forwarded_slot(hook));
    answer = call_driver_or_stand_in<hook>(args...);
    return *answer;
  };
  try {
    Runtime* runtime = Runtime::get(kHookSide);
    if (runtime == nullptr) return call_driver_or_stand_in<hook>(args...);
    tally::add(intercepted_slot(hook));
    return serve_call(runtime->router(), Pass(kHooks[index_of(hook)].symbol, pass));
  } catch (...) {
    // Not of C++: pthread_cancel, inside the driver. The thread ends, as it would without us.
    if (abi::__cxa_current_exception_type() == nullptr) throw;
    warn_of_own_fault(kHooks[index_of(hook)].symbol);
    // A call must not be made twice.
    return answer ? *answer : pass();
  }
}

template <Hook hook, auto route, typename... Args>
CUresult serve(Args... args) {
  return serve<hook>([&](Router& router, const Pass& pass) { return (router.*route)(args..., pass); },
                     args...);
}

template <Hook hook, typename... Args>
CUresult forward(Args... args) {
  return serve<hook>([](Router& router, const Pass& pass) { return router.pass_on(pass); }, args...);
}

// Once more, with what we cache handed back before.
template <Hook hook, typename... Args>
[[gnu::cold, gnu::noinline]] CUresult retry_with_memory(Args... args) {
  const Reentry entry;
  if (!entry.outermost()) return CUDA_ERROR_OUT_OF_MEMORY;
  CUresult answer = CUDA_ERROR_OUT_OF_MEMORY;
  const auto pass = [&] {
    tally::add(forwarded_slot(hook));
    return answer = call_driver<hook>(args...);
  };
  try {
    if (Runtime* runtime = Runtime::get(kHookSide); runtime != nullptr)
      return runtime->router().retry_with_memory(Pass(kHooks[index_of(hook)].symbol, pass));
  } catch (...) {
    if (abi::__cxa_current_exception_type() == nullptr) throw;
    warn_of_own_fault(kHooks[index_of(hook)].symbol);
  }
  return answer;
}

// For launches, the hottest calls of a program: passed on before anything else is done but to count them,
// once for both sides.
template <Hook hook, typename... Args>
CUresult pass_first(Args... args) {
  tally::add(intercepted_slot(hook));
  const CUresult result = call_driver_or_stand_in<hook>(args...);
  return result != CUDA_ERROR_OUT_OF_MEMORY ? result : retry_with_memory<hook>(args...);
}

}  // namespace tidepool
