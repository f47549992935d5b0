// The driver's own threads; see attendants.hpp.
#include "attendants.hpp"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <ctime>
#include <thread>

#include "call.hpp"
#include "context.hpp"
#include "state.hpp"
#include "timeline.hpp"

namespace sim {
namespace {

using namespace std::chrono_literals;

// So long after the last call the program is taken to wait for something else than the driver.
constexpr std::chrono::nanoseconds patience = 50us;
constexpr std::chrono::nanoseconds longest_nap = 1ms;

struct Attendants {
  std::thread clock, calls;
  pid_t process = 0;
  bool clock_sleeps = false, calling = false, leaving = false;
  std::condition_variable work, call;
};

Attendants& attendants() {
  static Attendants* const instance = new Attendants;
  return *instance;
}

std::int64_t host_time() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1'000'000'000LL + time.tv_nsec;
}

void keep_clock() {
  std::unique_lock lock(driver_mutex());
  Attendants& self = attendants();
  std::int64_t seen = host_time();
  while (!self.leaving) {
    if (!timeline().anything_due()) {
      self.clock_sleeps = true;
      self.work.wait(lock);
      self.clock_sleeps = false;
      seen = host_time();
      continue;
    }
    const std::chrono::nanoseconds rest(timeline().until_next());
    self.work.wait_for(lock, std::clamp(rest, patience, longest_nap));
    const std::int64_t now = host_time();
    const std::int64_t idle = now - std::max(seen, timeline().last_call());
    if (idle < patience.count()) continue;
    seen = now;
    if (!self.leaving) timeline().pass(idle);
  }
}

void make_calls() {
  std::unique_lock lock(driver_mutex());
  Attendants& self = attendants();
  while (true) {
    self.call.wait(lock, [&] { return self.leaving || !timeline().calls().empty(); });
    if (self.leaving) return;
    Operation* operation = timeline().calls().front();
    timeline().calls().pop_front();
    const CUresult result = operation->lane->context->error;
    self.calling = true;
    lock.unlock();
    {
      const CallbackScope scope;
      operation->work.call(result);
    }
    lock.lock();
    self.calling = false;
    if (self.leaving) return;
    timeline().returned(operation);
  }
}

// Signals are the program's, and for its threads to take.
std::thread start(void (*body)()) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread(body);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  attendants().process = getpid();
  return thread;
}

}  // namespace

void attend_clock() {
  Attendants& self = attendants();
  if (self.leaving) return;
  if (!self.clock.joinable()) self.clock = start(keep_clock);
  if (self.clock_sleeps) self.work.notify_one();
}

void attend_calls() {
  Attendants& self = attendants();
  if (self.leaving) return;
  if (!self.calls.joinable()) self.calls = start(make_calls);
  self.call.notify_one();
}

void dismiss_attendants() {
  Attendants& self = attendants();
  std::unique_lock lock(driver_mutex());
  if (self.process != getpid()) return;  // none here: a child of a fork has no threads of its parent
  self.leaving = true;
  self.work.notify_one();
  self.call.notify_one();
  // A host function that never returns must not keep the process from its end, nor one that ends it.
  const bool busy = self.calling;
  lock.unlock();
  if (self.clock.joinable()) self.clock.join();
  if (busy)
    self.calls.detach();
  else if (self.calls.joinable())
    self.calls.join();
}

}  // namespace sim
