// What else can go wrong between a program, the loader and a driver's table that was redirected; each was
// met by somebody. The matrix of ways and openings is in test_coverage.cpp.
#include <catch2/catch.hpp>

#include "tests/preload/coverage/cells.hpp"

using namespace tidepool::test;

namespace {

constexpr int kKernelCannot = 77;

Run run_hardened(const std::string& how, const Cell& cell, const std::string& mode) {
  std::vector<std::string> command = command_of(cell);
  command.insert(command.begin(), {HARDENED, how});
  return run_on_simulator(command, mode, environment_of(cell));
}

}  // namespace

TEST_CASE("dladdr names a driver's entry as it does without the shim") {
  const Run plain = run_on_simulator({NAMES}, "");
  REQUIRE(plain.outcome.out.find("cuMemAlloc_v2 is cuMemAlloc_v2") != std::string::npos);
  for (const std::string mode : {"off", "passthrough", "ondemand"})
    CHECK(run_on_simulator({NAMES}, mode).outcome.out == plain.outcome.out);
}

TEST_CASE("the loader sees who asks it: RTLD_NEXT and a RUNPATH are those of the caller") {
  if (left_out("a program that uses RTLD_DEEPBIND")) return;
  const Run plain = run_on_simulator({CALLERS}, "");
  REQUIRE(plain.outcome.out == "11 22 4\n11 22 4\n");
  for (const std::string mode : {"off", "passthrough", "ondemand"})
    CHECK(run_on_simulator({CALLERS}, mode).outcome.out == plain.outcome.out);
}

TEST_CASE("a driver that is opened by another file name, as taichi does, is seen") {
  for (const std::string opening : {"lazy", "deepbind"})
    for (const std::string& driver : kDrivers)
      if (opening == "lazy" || !left_out("RTLD_DEEPBIND"))
        check_covered({"by_dlsym", opening, driver}, {"passthrough", "ondemand"},
                      {{"CLIENT_DRIVER", "libcuda.so"}});
}

TEST_CASE("where memory may not become executable, all is as elsewhere") {
  if (left_out("a hardened system")) return;
  for (const std::string opening : {"now", "deepbind"})
    for (const std::string& client : kClients) {
      const Cell cell{client, opening, kDrivers[0]};
      const Run run = run_hardened("exec", cell, "passthrough");
      if (run.outcome.exit_code == kKernelCannot) {
        WARN("this kernel has no PR_SET_MDWE (Linux 6.3)");
        return;
      }
      INFO(name_of(cell) << ": " << run.outcome.out << run.outcome.err);
      CHECK(run.outcome.exit_code == 0);
      REQUIRE(run.report.is_object());
      CHECK(run.report.at("intercepted").get<Counts>() == hooked_only(run.calls));
    }
}

TEST_CASE("where the driver's table cannot be written, look-ups are answered with wrappers") {
  if (left_out("a hardened system")) return;
  for (const std::string& client : kClients)
    for (const std::string opening : {"now", "lazy", "deepbind"}) {
      const Cell cell{client, opening, kDrivers[0]};
      const Run plain = run_hardened("write", cell, "");
      REQUIRE(plain.outcome.exit_code == 0);
      const Run run = run_hardened("write", cell, "passthrough");
      INFO(name_of(cell) << ": " << run.outcome.out << run.outcome.err);
      CHECK(run.outcome.out == plain.outcome.out);
      REQUIRE(run.report.is_object());
      if (opening != "deepbind") {
        CHECK(run.report.at("intercepted").get<Counts>() == hooked_only(run.calls));
      } else if (!client.starts_with("by_")) {
        // Bound past us for good: said, not hidden.
        CHECK(run.report.at("intercepted").empty());
        CHECK(listed(run.report.at("uncovered")).find("cannot be redirected") != std::string::npos);
      }
    }
}

TEST_CASE("an interposer that is preloaded behind us, and so passed by, is named; one before us is not") {
  if (left_out("the order of preloads, in which a sanitizer's runtime is the first")) return;
  const std::string libraries[] = {preload_of(SHIM) + ":" + INTERPOSER, std::string(INTERPOSER) + ":" + SHIM};
  for (const std::string& preload : libraries) {
    const Run run = run_on_simulator(command_of({"by_dlsym", "now", kDrivers[0]}), "passthrough",
                                     {{"LD_PRELOAD", preload}});
    INFO(preload << ": " << run.outcome.out << run.outcome.err);
    CHECK(run.outcome.exit_code == 0);
    REQUIRE(run.report.is_object());
    const bool named =
        listed(run.report.at("uncovered")).find("is preloaded behind tidepool") != std::string::npos;
    CHECK(named == (preload == libraries[0]));
  }
}

TEST_CASE("threads that open, look up, close and fork at once get through") {
  if (left_out("a program that uses RTLD_DEEPBIND")) return;
  const std::string folder = std::string(CLIENTS) + "/lib";
  for (const std::string& driver : kDrivers)
    for (const Environment& audit : {Environment{}, kAudited}) {
      Environment environment = audit;
      environment["LD_LIBRARY_PATH"] = driver;
      environment.merge(without_leak_check());
      const Run run = run_on_simulator({STORM, folder + "linked_lazy.so", folder + "linked_now.so"},
                                       "ondemand", environment);
      INFO(driver << ": " << run.outcome.out << run.outcome.err);
      CHECK(run.outcome.exit_code == 0);
    }
}
