// The real driver: one typed, counted function object per entry that the shim calls.
//
//   driver.cuMemCreate(&handle, size, &properties, 0)
//
// Threading: any thread; bind() once, before the first call.
#pragma once

#include <atomic>
#include <cstdint>

#include "shim/base/reentry.hpp"
#include "shim/driver/cuda.hpp"

namespace tidepool {

template <typename Function>
class EntryPoint;

template <typename... Parameters>
class EntryPoint<CUresult(Parameters...)> {
 public:
  constexpr explicit EntryPoint(const char* name) : name_(name) {}

  // The driver's answer; CUDA_ERROR_NOT_FOUND where the driver has no such entry.
  CUresult operator()(Parameters... parameters) {
    auto* function = reinterpret_cast<CUresult (*)(Parameters...)>(address_.load(std::memory_order_acquire));
    if (function == nullptr) return CUDA_ERROR_NOT_FOUND;
    calls_.fetch_add(1, std::memory_order_relaxed);
    const Reentry inside;
    return function(parameters...);
  }

  void bind(void* address) { address_.store(address, std::memory_order_release); }
  const char* name() const { return name_; }
  std::uint64_t calls() const { return calls_.load(std::memory_order_relaxed); }

 private:
  const char* name_;
  std::atomic<void*> address_{nullptr};
  std::atomic<std::uint64_t> calls_{0};
};

struct Driver {
#define ENTRY(name) EntryPoint<decltype(::name)> name{#name};
#include "shim/driver/entry_points.def"
#undef ENTRY

  // `find(name)` gives the driver's own address of an exported name, or null.
  template <typename Find>
  void bind(const Find& find) {
#define ENTRY(entry) entry.bind(find(entry.name()));
#include "shim/driver/entry_points.def"
#undef ENTRY
  }

  // Calls `visit(name, calls)` for every entry.
  template <typename Visit>
  void for_each_entry(const Visit& visit) const {
#define ENTRY(entry) visit(entry.name(), entry.calls());
#include "shim/driver/entry_points.def"
#undef ENTRY
  }
};

// The one driver of the process; constant-initialised, so usable before any constructor has run.
extern constinit Driver driver;

}  // namespace tidepool
