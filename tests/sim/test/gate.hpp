// A host function that blocks for as long as a test wants it to.
#pragma once
#include <condition_variable>
#include <mutex>

// A host function that stays inside until it is let go.
struct Gate {
  std::mutex mutex;
  std::condition_variable changed;
  bool entered = false, open = false;

  static void pass(void* gate) { static_cast<Gate*>(gate)->pass(); }
  void pass() {
    std::unique_lock lock(mutex);
    entered = true;
    changed.notify_all();
    changed.wait(lock, [this] { return open; });
  }
  void wait_entered() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [this] { return entered; });
  }
  void let_go() {
    const std::lock_guard lock(mutex);
    open = true;
    changed.notify_all();
  }
};
