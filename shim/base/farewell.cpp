// The thread that waits for the end; see farewell.hpp.
#include "shim/base/farewell.hpp"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
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

// The first thread stays on the list when it has ended, until the process does.
bool first_thread_ended() {
  const int file = ::open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
  char text[256];
  const ssize_t length = file < 0 ? 0 : ::read(file, text, sizeof text - 1);
  if (file >= 0) ::close(file);
  text[length > 0 ? length : 0] = '\0';
  const char* state = ::strrchr(text, ')');
  return state != nullptr && state[1] == ' ' && state[2] == 'Z';
}

// A program may end by ending its threads; this one must not keep it.
bool is_left_alone() {
  int threads = 0;
  DIR* tasks = ::opendir("/proc/self/task");
  if (tasks == nullptr) return false;
  while (const dirent* entry = ::readdir(tasks)) threads += entry->d_name[0] != '.';
  ::closedir(tasks);
  return threads == 2 && first_thread_ended();
}

void* keep_watch(void*) {
  while (stage.load(std::memory_order_acquire) == asleep) {
    const timespec until = from_now(250);
    wait_while(asleep, &until);
    if (is_left_alone()) ::exit(0);  // as the C library does with the last thread
  }
  task_of_owner.load(std::memory_order_relaxed)();
  stage.store(done, std::memory_order_release);
  wake_all();
  return nullptr;
}

bool start_thread() {
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0) return false;
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_attr_setstacksize(&attributes, 512 << 10);  // the default may be as large as the user's limit
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
  owner.store(::getpid());
  task_of_owner.store(task, std::memory_order_relaxed);
  stage.store(asleep, std::memory_order_release);
  if (!start_thread()) stage.store(nothing, std::memory_order_release);
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
