// The matrix as data: a client library, opened in one way, on one driver; run with and without the shim.
#include "tests/preload/coverage/cells.hpp"

#include <catch2/catch.hpp>

namespace tidepool::test {

const std::vector<std::string> kClients{"by_dlsym", "by_procaddress", "linked_lazy", "linked_now",
                                        "constructor_calls"};
const std::vector<std::string> kDrivers{SIMULATOR_LIBRARIES, MINIDRIVER};
const Environment kAudited{{"LD_AUDIT", COMPANION}};

std::vector<Cell> cells(const std::vector<std::string>& openings, int rounds) {
  std::vector<Cell> all;
  for (const std::string& opening : openings) {
    if (SANITIZED && opening != "now" && opening != "lazy") continue;
    for (const std::string& driver : kDrivers)
      for (const std::string& client : kClients) all.push_back({client, opening, driver, rounds});
    // Asks for a version, which one of the drivers has.
    all.push_back({"by_dlvsym", opening, MINIDRIVER, rounds});
    // The simulated driver has threads of its own, under which it must not be closed.
    all.push_back({"threaded", opening, MINIDRIVER, rounds});
  }
  return all;
}

bool left_out(const char* what) {
  if (SANITIZED) WARN("not tested with a sanitizer: " << what);
  return SANITIZED;
}

std::string name_of(const Cell& cell) {
  return cell.client + ", opened " + cell.opening + ", on " + cell.driver;
}

std::vector<std::string> command_of(const Cell& cell) {
  return {OPENER, cell.opening, std::to_string(cell.rounds),
          std::string(CLIENTS) + "/lib" + cell.client + ".so"};
}

Environment environment_of(const Cell& cell, Environment more) {
  more["LD_LIBRARY_PATH"] = cell.driver;
  more.merge(without_leak_check());
  return more;
}

Run open_client(const Cell& cell, const std::string& mode, const Environment& more) {
  return run_on_simulator(command_of(cell), mode, environment_of(cell, more));
}

void check_covered(const Cell& cell, const std::vector<std::string>& modes, const Environment& more) {
  const Run plain = open_client(cell, "", more);
  INFO(name_of(cell) << ": " << plain.outcome.out << plain.outcome.err);
  REQUIRE(plain.outcome.exit_code == 0);
  REQUIRE(hooked_only(plain.calls).at("cuMemAlloc_v2") >= 2);
  for (const std::string& mode : modes) {
    const Run run = open_client(cell, mode, more);
    INFO("mode " << mode << ": " << run.outcome.out << run.outcome.err);
    CHECK(run.outcome.exit_code == 0);
    CHECK(run.outcome.out == plain.outcome.out);
    if (mode == "off") continue;
    CHECK(run.report.is_object());
    if (!run.report.is_object()) continue;
    CHECK(run.report.at("intercepted").get<Counts>() == hooked_only(plain.calls));
    if (mode == "passthrough") CHECK(hooked_only(run.calls) == hooked_only(plain.calls));
  }
}

std::string listed(const nlohmann::json& lines) {
  std::string all;
  for (const auto& line : lines) all += line.get<std::string>() + "\n";
  return all;
}

}  // namespace tidepool::test
