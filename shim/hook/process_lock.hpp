// A lock for look-up paths: no libc, no allocation, and a child that was forked while another thread held
// it does not wait for a ghost, since it is owned by a process id.
//
// The loader's lock is never waited for while one is held: a constructor that runs under the loader's
// lock, or the loader itself through the audit companion, may want this one.
#pragma once

#include <sched.h>
#include <unistd.h>

#include <atomic>

namespace tidepool {

class ProcessLock {
 public:
  void lock() {
    const pid_t self = getpid();
    for (pid_t holder = 0; !holder_.compare_exchange_weak(holder, self, std::memory_order_acquire);) {
      if (holder == self) {
        sched_yield();
        holder = 0;
      }
    }
  }
  void unlock() { holder_.store(0, std::memory_order_release); }

 private:
  std::atomic<pid_t> holder_{0};
};

class ProcessLockGuard {
 public:
  explicit ProcessLockGuard(ProcessLock& lock) : lock_(lock) { lock_.lock(); }
  ~ProcessLockGuard() { lock_.unlock(); }
  ProcessLockGuard(const ProcessLockGuard&) = delete;
  ProcessLockGuard& operator=(const ProcessLockGuard&) = delete;

 private:
  ProcessLock& lock_;
};

}  // namespace tidepool
