// The shim for aarch64, in an emulator: the loader's entries there are wrapped in assembly of their own.
#include <catch2/catch.hpp>

#include "tests/preload/harness.hpp"

using namespace tidepool::test;
using Counts = std::map<std::string, std::uint64_t>;

namespace {

// The variables of the loader go to the emulated one only.
Run emulate(const std::vector<std::string>& program, const std::string& mode) {
  const ScratchFolder scratch;
  const std::string folder = CROSS;
  std::vector<std::string> command{EMULATOR, "-L", "/usr/aarch64-linux-gnu", "-E",
                                   "LD_LIBRARY_PATH=" + folder};
  if (!mode.empty()) command.insert(command.end(), {"-E", "LD_PRELOAD=" + folder + "/libtidepool.so"});
  command.insert(command.end(), program.begin(), program.end());
  Run run;
  run.outcome = tidepool::test::run(command, {{"TIDEPOOL_MODE", mode},
                                              {"TIDEPOOL_REPORT", scratch.path("report")},
                                              {"SIM_LOG", scratch.path("calls")}});
  run.report = nlohmann::json::parse(read_file(scratch.path("report")), nullptr, false);
  read_log(read_file(scratch.path("calls")), run);
  return run;
}

}  // namespace

TEST_CASE("on aarch64 no call of a client library passes unseen, closed and opened again") {
  for (const std::string client :
       {"by_dlsym", "by_dlvsym", "by_procaddress", "linked_lazy", "linked_now", "constructor_calls"})
    for (const std::string opening :
         {"now", "lazy", "deepbind", "lazy-deepbind", "deepbind-base", "by-libc"}) {
      const std::vector<std::string> program{CROSS "/opener", opening, "2", CROSS "/lib" + client + ".so"};
      const Run plain = emulate(program, "");
      INFO(client << ", opened " << opening << ": " << plain.outcome.out << plain.outcome.err);
      REQUIRE(plain.outcome.exit_code == 0);
      for (const std::string mode : {"passthrough", "ondemand"}) {
        if (mode == "ondemand" && opening != "now") continue;  // an emulated start takes its time
        const Run run = emulate(program, mode);
        INFO(mode << ": " << run.outcome.out << run.outcome.err);
        CHECK(run.outcome.exit_code == 0);
        CHECK(run.outcome.out == plain.outcome.out);
        REQUIRE(run.report.is_object());
        CHECK(run.report.at("intercepted").get<Counts>() == hooked_only(plain.calls));
      }
    }
}

TEST_CASE("on aarch64 the loader sees who asks it") {
  const Run plain = emulate({CROSS "/callers"}, "");
  REQUIRE(plain.outcome.out == "11 22 4\n11 22 4\n");
  for (const std::string mode : {"off", "passthrough", "ondemand"})
    CHECK(emulate({CROSS "/callers"}, mode).outcome.out == plain.outcome.out);
}
