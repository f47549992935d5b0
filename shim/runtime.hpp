// The composition root, and the only global object with a state to speak of (below it lie the driver's
// table, the counters and the trace): settings, router and report of this process. Built at the first intercepted call,
// never destroyed: the application may call us from its last destructor.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "shim/base/frameworks.hpp"
#include "shim/base/lifecycle.hpp"
#include "shim/base/settings.hpp"
#include "shim/report/announcer.hpp"
#include "shim/route/router.hpp"

namespace tidepool {

// What the interception layer counts.
struct HookFacts {
  std::map<std::string, std::uint64_t> intercepted;
  std::map<std::string, std::uint64_t> forwarded;
  std::vector<std::string> uncovered;
};

// What is asked of the interception layer; it lies above, so it hands functions down.
struct HookSide {
  HookFacts (*facts)();
  Router::LookAtCaller look_at_caller;
};

class Runtime {
 public:
  // Null: this process is none of our business (mode off, a detached child of a fork). The first call
  // builds it; it may come from another library's constructor, before any of ours.
  static Runtime* get(const HookSide& hooks) {
    Runtime* runtime = built.load(std::memory_order_acquire);
    return runtime != nullptr && !lifecycle::detached() ? runtime : get_first(hooks);
  }

  Router& router() { return router_; }

  // cuInit succeeded: the report is written before the driver's own exit handlers run.
  static void driver_initialised() noexcept;

  // Writes the report at exit; called again at the very end, it does so if calls came after the first.
  static void finish() noexcept;

  // For the ends of a process that run no exit handler; async-signal-safe.
  static void say_last_words() noexcept;

 private:
  explicit Runtime(const HookSide& hooks);
  static void finish_with(int status) noexcept;
  static Runtime* create(const HookSide& hooks);
  static Runtime* existing();
  static Runtime* get_first(const HookSide& hooks);
  static constinit std::atomic<Runtime*> built;

  bool reports() const { return !settings_.report.empty() || !run_folder_.empty(); }
  void start_trace();
  void write_report();
  void on_out_of_memory();

  const HookSide hooks_;
  const Settings settings_;
  const std::string run_folder_;  // TIDEPOOL_RUN: where `tidepool run` gathers reports; may be empty
  const std::string started_;
  std::atomic<long> pid_{0};  // of the process that initialised the driver
  Variables at_start_;        // what frameworks were told when it did
  report::Announcer announcer_;
  Router router_;
  std::mutex report_lock_;
  std::map<std::string, std::uint64_t> reported_;
  std::size_t reported_diagnoses_ = 0;
  std::atomic<long> last_report_seconds_{0};
  bool report_failed_ = false;
};

}  // namespace tidepool
