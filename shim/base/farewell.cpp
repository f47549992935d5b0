// The thread that waits for the end; see farewell.hpp.
#include "shim/base/farewell.hpp"

#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>

namespace tidepool::farewell {
namespace {

enum Stage : int { nothing, asleep, asked, done };

constinit std::atomic<int> stage{nothing};
constinit std::atomic<pid_t> owner{0};
constinit std::atomic<void (*)() noexcept> task_of_owner{nullptr};

void wait_while(int value, const timespec* patience) {
  ::syscall(SYS_futex, &stage, FUTEX_WAIT_PRIVATE, value, patience, nullptr, 0);
}

void move_to(int value) {
  stage.store(value, std::memory_order_release);
  ::syscall(SYS_futex, &stage, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

void* keep_watch(void*) {
  while (stage.load(std::memory_order_acquire) == asleep) wait_while(asleep, nullptr);
  task_of_owner.load(std::memory_order_relaxed)();
  move_to(done);
  return nullptr;
}

bool start_thread() {
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0) return false;
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  // The program's signals are for the program's threads.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread{};
  const bool started = pthread_create(&thread, &attributes, keep_watch, nullptr) == 0;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_attr_destroy(&attributes);
  return started;
}

}  // namespace

void prepare(void (*task)() noexcept) {
  if (owner.exchange(::getpid()) == ::getpid()) return;
  task_of_owner.store(task, std::memory_order_relaxed);
  stage.store(asleep, std::memory_order_release);
  if (!start_thread()) stage.store(nothing, std::memory_order_release);
}

void run() noexcept {
  int expected = asleep;
  if (owner.load() != ::getpid() || !stage.compare_exchange_strong(expected, asked)) return;
  move_to(asked);
  const timespec patience{0, 500'000'000};
  if (stage.load(std::memory_order_acquire) == asked) wait_while(asked, &patience);
}

}  // namespace tidepool::farewell
