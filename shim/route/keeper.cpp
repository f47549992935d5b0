// The thread that looks after cached memory.
#include "shim/route/keeper.hpp"

#include <chrono>
#include <thread>

#include "shim/base/own_threads.hpp"
#include "shim/base/reentry.hpp"

namespace tidepool {
namespace {

using namespace std::chrono_literals;

constexpr auto kNap = 250ms;
// Between two pieces of work, so that whoever wants a lock gets it.
constexpr auto kBreath = 1ms;
// A look may be held up by the driver, which may be held up by whom we are called from.
constexpr auto kPatience = 200ms;

// By this thread's fork; two threads may fork at a time.
constinit thread_local bool paused_for_fork __attribute__((tls_model("initial-exec"))) = false;

}  // namespace

// A forked child must not inherit a driver, or a heap, in the middle of a call of a thread that it does not
// have.
Keeper::Keeper(std::function<Next()> look)
    : look_(std::move(look)),
      around_fork_{[](void* self) { paused_for_fork = static_cast<Keeper*>(self)->pause_briefly(); },
                   [](void* self) {
                     if (paused_for_fork) static_cast<Keeper*>(self)->working_.unlock();
                   },
                   this} {}

void Keeper::watch() noexcept {
  if (stopped_.load(std::memory_order_relaxed) || alive_.exchange(true)) return;
  lifecycle::set_around_fork(&around_fork_);
  const auto body = [](void* self) { static_cast<Keeper*>(self)->live(); };
  if (!own_threads::start("tidepool-keeper", body, this)) alive_.store(false);
}

void Keeper::live() noexcept {
  Next next = Next::wait;
  while (!stopped_.load(std::memory_order_relaxed)) {
    if (next == Next::wait) own_threads::exit_if_left_alone();
    std::this_thread::sleep_for(next == Next::go_on ? kBreath : kNap);
    const std::lock_guard hold(working_);
    if (stopped_.load(std::memory_order_relaxed)) return;
    const Reentry inside;
    next = look_();
    if (next != Next::nothing) continue;
    // Whoever makes it worthwhile meanwhile either finds the thread ended, or is seen here.
    alive_.exchange(false);
    if (look_() == Next::nothing || alive_.exchange(true)) return;
    next = Next::wait;
  }
}

bool Keeper::pause_briefly() noexcept {
  const auto until = std::chrono::steady_clock::now() + kPatience;
  while (!working_.try_lock()) {
    if (std::chrono::steady_clock::now() >= until) return false;
    std::this_thread::sleep_for(100us);
  }
  return true;
}

void Keeper::stop() noexcept {
  stopped_.store(true, std::memory_order_relaxed);
  if (pause_briefly()) working_.unlock();
}

}  // namespace tidepool
