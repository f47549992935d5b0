// The thread that waits for the end; see farewell.hpp.
#include "shim/base/farewell.hpp"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>

#include "shim/base/own_threads.hpp"

namespace tidepool::farewell {
namespace {

enum Stage : int { nothing, asleep, asked, done };

constinit std::atomic<int> stage{nothing};
constinit std::atomic<pid_t> owner{0};
constinit std::atomic<void (*)() noexcept> task_of_owner{nullptr};

// Until the stage is another one, or the moment (of CLOCK_MONOTONIC) is reached. A signal is no reason.
void wait_while(int value, const timespec* until) {
  while (stage.load(std::memory_order_acquire) == value)
    if (::syscall(SYS_futex, &stage, FUTEX_WAIT_BITSET_PRIVATE, value, until, nullptr,
                  FUTEX_BITSET_MATCH_ANY) != 0 &&
        errno == ETIMEDOUT)
      return;
}

void wake_all() { ::syscall(SYS_futex, &stage, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0); }

timespec from_now(long milliseconds) {
  timespec moment{};
  ::clock_gettime(CLOCK_MONOTONIC, &moment);
  moment.tv_nsec += milliseconds * 1'000'000;
  moment.tv_sec += moment.tv_nsec / 1'000'000'000;
  moment.tv_nsec %= 1'000'000'000;
  return moment;
}

void keep_watch(void*) {
  while (stage.load(std::memory_order_acquire) == asleep) {
    const timespec until = from_now(250);
    wait_while(asleep, &until);
    own_threads::exit_if_left_alone();
  }
  task_of_owner.load(std::memory_order_relaxed)();
  stage.store(done, std::memory_order_release);
  wake_all();
}

}  // namespace

void prepare(void (*task)() noexcept) {
  owner.store(::getpid());
  task_of_owner.store(task, std::memory_order_relaxed);
  stage.store(asleep, std::memory_order_release);
  if (!own_threads::start("tidepool-report", keep_watch, nullptr))
    stage.store(nothing, std::memory_order_release);
}

void run() noexcept {
  if (owner.load() != ::getpid()) return;
  const timespec until = from_now(500);
  int expected = asleep;
  if (stage.compare_exchange_strong(expected, asked)) wake_all();
  // Also for a second thread that ends the process: it would end the first one's report.
  wait_while(asked, &until);
}

}  // namespace tidepool::farewell
