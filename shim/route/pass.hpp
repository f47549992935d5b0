// "Do what the application asked, as if we were not here": the intercepted call, bound to its arguments
// and to the driver's own entry. Not owning: lives as long as the wrapper that made it.
#pragma once

#include <type_traits>

#include "shim/driver/cuda.hpp"

namespace tidepool {

class Pass {
 public:
  template <typename Call>
  requires(!std::is_same_v<std::remove_cvref_t<Call>, Pass>) Pass(const char* entry, const Call& call)
      : entry_(entry),
        call_(&call),
        run_([](const void* bound) { return (*static_cast<const Call*>(bound))(); }) {}

  // Calls the driver; may be repeated.
  CUresult operator()() const { return run_(call_); }
  // The exported name of the entry that the application called.
  const char* entry() const { return entry_; }

 private:
  const char* entry_;
  const void* call_;
  CUresult (*run_)(const void*);
};

}  // namespace tidepool
