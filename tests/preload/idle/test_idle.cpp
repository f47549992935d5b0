// What a program still holds after it has rested, by the simulated driver's own count, and that nothing else
// about it is different. The scenes last for seconds, so all run at once.
#include <catch2/catch.hpp>
#include <future>

#include "tests/preload/harness.hpp"

using namespace tidepool::test;

namespace {

constexpr std::uint64_t kMiB = 1 << 20;
constexpr std::uint64_t kGiB = 1 << 30;

struct Seen {
  Outcome outcome;
  Run run;
  nlohmann::json driver;  // null: the process ended without an exit handler
  std::uint64_t used() const { return driver.at("devices").at(0).at("used_bytes"); }
  std::uint64_t calls(const std::string& entry) const {
    const auto count = run.calls.find(entry);
    return count == run.calls.end() ? 0 : count->second;
  }
};

class Scene {
 public:
  Scene(const std::string& name, const std::string& mode, Environment more = {})
      : name_(name + " in " + (mode.empty() ? "no shim" : mode)) {
    more.insert({{"LD_LIBRARY_PATH", SIMULATOR_LIBRARIES},
                 {"SIM_LOG", scratch_.path("calls")},
                 {"SIM_STATS", scratch_.path("stats")},
                 {"SIM_DETECT", "all"},
                 {"TIDEPOOL_MODE", mode},
                 {"TIDEPOOL_REPORT", scratch_.path("report")}});
    if (!mode.empty()) more["LD_PRELOAD"] = preload_of(SHIM);
    outcome_ = std::async(std::launch::async, [name, more] {
      return run({IDLE_VICTIM, name}, more, std::chrono::seconds(90));
    });
  }

  // Checks what is right of every scene.
  Seen seen() {
    Seen seen{outcome_.get(), {}, nullptr};
    INFO(name_ << ": " << seen.outcome.out << seen.outcome.err);
    CHECK(seen.outcome.exit_code == 0);
    CHECK(seen.outcome.out.starts_with("done\n"));
    CHECK(seen.outcome.err.empty());
    read_log(read_file(scratch_.path("calls")), seen.run);
    CHECK(seen.run.violations.empty());
    seen.run.report = nlohmann::json::parse(read_file(scratch_.path("report")), nullptr, false);
    if (seen.run.report.is_object())  // the last call of the driver's is before the report
      CHECK(seen.run.report.at("driver_calls").value("cuMemUnmap", std::uint64_t{0}) ==
            seen.calls("cuMemUnmap"));
    const std::string stats = read_file(scratch_.path("stats"));
    if (!stats.empty()) seen.driver = nlohmann::json::parse(stats);
    return seen;
  }

 private:
  const std::string name_;
  const ScratchFolder scratch_;
  std::future<Outcome> outcome_;
};

const Environment kSlowly{{"SIM_FAULTS", "cuMemUnmap@*=pause:1"}};

}  // namespace

TEST_CASE("a program that rests gives back what it has freed, once and unnoticed") {
  Scene briefly("rests_briefly", "ondemand"), rests("rests", "ondemand"), managed("rests", "managed"),
      share("rests", "prealloc", {{"TIDEPOOL_FRACTION", "0.01"}}), steps("rests_between_steps", "ondemand"),
      works("works_on", "ondemand"), forks("forks", "ondemand"),
      captures("captures_while_it_rests", "ondemand"), contexts("contexts_while_it_rests", "ondemand"),
      busy("device_is_busy", "ondemand"), end("ends_by_exit", "ondemand", kSlowly),
      bare_end("ends_by_bare_exit", "ondemand", kSlowly),
      quick_end("ends_by_quick_exit", "ondemand", kSlowly), last("last_thread", "ondemand"),
      last_unreported("last_thread", "ondemand", {{"TIDEPOOL_REPORT", ""}}),
      small("small_program", "ondemand");

  CHECK(briefly.seen().used() >= 3 * kGiB);
  CHECK(rests.seen().used() <= 64 * kMiB);
  CHECK(managed.seen().used() <= 64 * kMiB);
  const std::uint64_t beyond_share = share.seen().used() - 818 * kMiB;  // a hundredth, in whole pages
  CHECK(beyond_share <= 64 * kMiB);
  CHECK(captures.seen().used() == kGiB);
  CHECK(contexts.seen().used() <= 64 * kMiB);
  CHECK(busy.seen().used() <= 64 * kMiB);
  CHECK(forks.seen().used() <= 64 * kMiB);
  // Who comes back for it soon keeps it from then on.
  const Seen stepped = steps.seen();
  CHECK(stepped.used() == kGiB);
  CHECK(stepped.calls("cuMemUnmap") == kGiB / (2 * kMiB));
  CHECK(works.seen().calls("cuMemUnmap") == 0);
  for (Scene* ended : {&end, &bare_end, &quick_end}) {
    const std::uint64_t gone = ended->seen().calls("cuMemUnmap");
    CHECK(gone > 0);
    CHECK(gone < 16 * kGiB / (2 * kMiB));
  }
  for (Scene* ended : {&last, &last_unreported}) ended->seen();
  small.seen();
}
