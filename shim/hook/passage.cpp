// Counters of the wrappers, and what the report is told of them.
#include "shim/hook/passage.hpp"

#include "shim/base/frameworks.hpp"
#include "shim/base/log.hpp"
#include "shim/hook/caller.hpp"
#include "shim/hook/unseen.hpp"

namespace tidepool {

void warn_of_own_fault(const char* entry) noexcept {
  static std::atomic<bool> warned{false};
  if (warned.exchange(true)) return;
  try {
    log::warn(std::string(entry) + ": out of host memory inside the shim; passing calls on to the driver");
  } catch (...) {
    // There is not even memory to say so.
  }
}

namespace {

HookFacts collect_hook_facts() {
  HookFacts facts;
  for (std::size_t i = 0; i < kHookCount; ++i) {
    const auto hook = static_cast<Hook>(i);
    const std::uint64_t intercepted = tally::sum(intercepted_slot(hook));
    facts.intercepted[kHooks[i].symbol] = intercepted;
    facts.forwarded[kHooks[i].symbol] =
        tally::sum(forwarded_slot(hook)) + (kHooks[i].passed_first ? intercepted : 0);
  }
  facts.uncovered = describe_uncovered();
  return facts;
}

}  // namespace

constinit const HookSide kHookSide{&collect_hook_facts, &look_at_caller};

void start_reporting() noexcept {
  try {
    if (Runtime::get(kHookSide) != nullptr) Runtime::driver_initialised();
  } catch (...) {
    // No memory for a report: the program goes on without.
  }
}

namespace {

// All that happens at load. Children inherit the preload, so a process that never uses CUDA runs this
// too: it must cost nothing there.
[[gnu::constructor]] void at_load() {
  try {
    apply_framework_variables();
  } catch (...) {
    // The program starts without them.
  }
}

// The very end: destructors of libraries may have called after the exit handlers. A driver that nobody
// was seen to start has a report too if it passed us by.
[[gnu::destructor]] void at_unload() {
  if (tally::sum(intercepted_slot(Hook::cuInit)) == 0) {
    if (!has_unseen_driver()) return;
    start_reporting();
  }
  Runtime::finish();
}

}  // namespace
}  // namespace tidepool
