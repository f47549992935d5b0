// The real driver: one typed, counted function object per entry that the shim calls.
//
//   driver.cuMemCreate(&handle, size, &properties, 0)
//
// Threading: any thread; bind() once, before the first call.
#pragma once

#include <atomic>
#include <cstdint>

#include "shim/base/reentry.hpp"
#include "shim/base/tally.hpp"
#include "shim/driver/cuda.hpp"

namespace tidepool {

template <typename Function>
class EntryPoint;

template <typename... Parameters>
class EntryPoint<CUresult(Parameters...)> {
 public:
  constexpr EntryPoint(const char* name, std::size_t slot) : name_(name), slot_(slot) {}

  // The driver's answer; CUDA_ERROR_NOT_FOUND where the driver has no such entry.
  CUresult operator()(Parameters... parameters) {
    auto* function = reinterpret_cast<CUresult (*)(Parameters...)>(address_.load(std::memory_order_acquire));
    if (function == nullptr) return CUDA_ERROR_NOT_FOUND;
    tally::add(slot_);
    const Reentry inside;
    return function(parameters...);
  }

  void bind(void* address) { address_.store(address, std::memory_order_release); }
  const char* name() const { return name_; }
  std::uint64_t calls() const { return tally::sum(slot_); }

 private:
  const char* name_;
  const std::size_t slot_;
  std::atomic<void*> address_{nullptr};
};

enum class DriverEntry : std::size_t {
#define ENTRY(name) name,
#include "shim/driver/entry_points.def"
#undef ENTRY
  count
};
static_assert(tally::kDriverSlots + static_cast<std::size_t>(DriverEntry::count) <= tally::kOtherSlots);

struct Driver {
#define ENTRY(name) \
  EntryPoint<decltype(::name)> name{#name, tally::kDriverSlots + static_cast<std::size_t>(DriverEntry::name)};
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
