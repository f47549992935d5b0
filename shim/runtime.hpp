// The composition root, and the only global object with a state to speak of (below it lie the driver's
// table and the counters): settings, router and report of this process. Built at the first intercepted call,
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
#include "shim/route/router.hpp"

namespace tidepool {

// What the interception layer knows and the report tells; it lies above, so it hands a function down.
struct HookFacts {
  std::map<std::string, std::uint64_t> intercepted;
  std::map<std::string, std::uint64_t> forwarded;
  std::vector<std::string> uncovered;
};

class Runtime {
 public:
  // Null: this process is none of our business (mode off, a detached child of a fork). The first call
  // builds it; it may come from another library's constructor, before any of ours.
  using HookFactSource = HookFacts (*)();
  static Runtime* get(HookFactSource hook_facts) {
    Runtime* runtime = built.load(std::memory_order_acquire);
    return runtime != nullptr && !lifecycle::detached() ? runtime : get_first(hook_facts);
  }

  Router& router() { return router_; }

  // cuInit succeeded: the report is written before the driver's own exit handlers run.
  static void driver_initialised() noexcept;

  // Writes the report at exit; called again at the very end, it does so if calls came after the first.
  static void finish() noexcept;

 private:
  explicit Runtime(HookFactSource hook_facts);
  static Runtime* create(HookFactSource hook_facts);
  static Runtime* existing();
  static Runtime* get_first(HookFactSource hook_facts);
  static constinit std::atomic<Runtime*> built;

  bool reports() const { return !settings_.report.empty() || !run_folder_.empty(); }
  void write_report();
  void on_out_of_memory();

  const HookFactSource hook_facts_;
  const Settings settings_;
  const std::string run_folder_;  // TIDEPOOL_RUN: where `tidepool run` gathers reports; may be empty
  const std::string started_;
  std::atomic<long> pid_{0};  // of the process that initialised the driver
  Variables at_start_;        // what frameworks were told when it did
  Router router_;
  std::mutex report_lock_;
  std::map<std::string, std::uint64_t> reported_;
  std::atomic<long> last_report_seconds_{0};
  bool report_failed_ = false;
};

}  // namespace tidepool
