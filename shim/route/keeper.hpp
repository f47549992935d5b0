// The thread that looks after cached memory while the application makes no call: all else of the shim happens
// within the application's calls, and a program that waits for its user makes none.
//
// It is there only while much is held. The driver has threads of its own by then, so to a program that counts
// its threads (Python warns of a fork beside others) nothing is different. What is to be done at a look is
// the router's affair; how long to wait before is Idleness's.
//
// Threading: any thread.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>

#include "policies/units.hpp"
#include "shim/base/lifecycle.hpp"

namespace tidepool {

class Keeper {
 public:
  // Less than this is not worth a thread, nor a call of the driver.
  static constexpr Bytes kWorthwhile = 64 * kMiB;

  enum class Next {
    nothing,  // is held that could be given back: the thread ends
    wait,     // look again in a while
    go_on,    // there is more to do at once
  };
  // `look` does a piece of work that takes no longer than a few calls of the driver, and throws nothing.
  explicit Keeper(std::function<Next()> look);

  // Much is held from here on. May be called with any lock held.
  void watch() noexcept;

  // No look is under way while this is held: for what the application takes away from under it, contexts.
  std::unique_lock<std::mutex> pause() { return std::unique_lock(working_); }

  // No look ever again. Waits for the one that is under way, but not for long.
  void stop() noexcept;

 private:
  void live() noexcept;
  bool pause_briefly() noexcept;

  const std::function<Next()> look_;
  const lifecycle::AroundFork around_fork_;
  std::atomic<bool> alive_{false};
  std::atomic<bool> stopped_{false};
  std::mutex working_;
};

}  // namespace tidepool
