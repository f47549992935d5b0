// Decides when a refusal becomes a screen. Frameworks try again: XLA asks for nine tenths of what it was
// refused until it is served, PyTorch hands back what it caches, batch-size finders ask for half. A series
// that ends well is a line at level info; one that does not is told of once, within a second of its
// beginning, and from then on only counted.
//
// A thread of ours asks the driver's management library who holds the memory, and waits for how the series
// ends. Where there can be none, a later call or the end of the process shows the screen.
//
// Threading: any thread; one lock, under which nothing waits but a write to the standard error.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "shim/report/cause.hpp"
#include "shim/report/text.hpp"

namespace tidepool::report {

// A screen that was shown, for the report.
struct Diagnosis {
  std::string time;
  Failure failure;
  Cause cause;
  std::string screen;
};

class Announcer {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds kPatience{600};

  // What it needs of others; each may be left empty.
  struct Means {
    std::function<void(const Failure&, MachineView&)> ask_machine;  // may wait
    bool (*start_thread)(const char* name, void (*body)(void*), void* argument) = nullptr;
    std::function<void(std::string_view screen)> show;
    std::function<void(std::string_view line)> note;  // a recovered series
    std::function<void()> shown;                      // afterwards: may allocate
  };
  explicit Announcer(Means means, std::string report_path)
      : means_(std::move(means)), report_path_(std::move(report_path)) {}

  // Is a series under way? No lock.
  bool open() const { return open_.load(std::memory_order_relaxed); }

  // `final`: nobody will try again, so that there is nothing to wait for. Allocates nothing.
  void refused(const Failure& failure, std::string_view python_stack, bool final);

  // A call of the same kind succeeded. Requires: open().
  void served(int device, Bytes size);

  // The process ends: what is still open is shown now, or noted where the program says that all is well.
  void flush(bool failed);
  // The same in a signal handler: what has been put in words already, if nobody is at it.
  void flush_from_handler();

  std::vector<Diagnosis> diagnoses() const;
  // Refusals that were not shown since their like had been.
  std::uint64_t counted() const { return counted_.load(std::memory_order_relaxed); }

 private:
  static void watch(void* announcer);
  void put_in_words();
  void wait_until(Clock::time_point deadline, std::unique_lock<std::mutex>& hold);
  void show(std::unique_lock<std::mutex>& hold);
  bool was_shown(int device, Cause cause) const;

  const Means means_;
  const std::string report_path_;
  mutable std::mutex lock_;
  std::condition_variable settled_;
  std::atomic<bool> open_{false};
  std::atomic<std::uint64_t> counted_{0};

  // The series under way.
  std::uint64_t series_ = 0;
  Clock::time_point deadline_;
  Failure failure_;
  Cause cause_ = Cause::unknown;
  Name<2048> python_stack_;
  Text screen_;
  bool asking_ = false;  // the machine

  struct Shown {
    int device;
    Cause cause;
  };
  std::array<Shown, 32> shown_{};
  std::size_t shown_count_ = 0;
  std::vector<Diagnosis> diagnoses_;
};

}  // namespace tidepool::report
