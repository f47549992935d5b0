// The shared object as it is shipped: what it exports, what it needs.
#include <algorithm>
#include <catch2/catch.hpp>
#include <set>
#include <sstream>

#include "tests/support/process.hpp"

using namespace tidepool::test;

namespace {

using Names = std::set<std::string>;

// The last word of every line of a tool's output that contains `mark`.
Names last_words(const std::vector<std::string>& command, const std::string& mark) {
  const Outcome outcome = run(command);
  REQUIRE(outcome.exit_code == 0);
  Names names;
  std::istringstream lines(outcome.out);
  for (std::string line; std::getline(lines, line);)
    if (line.find(mark) != std::string::npos) names.insert(line.substr(line.find_last_of(' ') + 1));
  return names;
}

const Names kTable{
#define HOOK(symbol, family, version) #symbol,
#define LOADER_HOOK(symbol) #symbol,
#define COMPANION_HOOK(symbol) #symbol,
#define PROCESS_HOOK(symbol) #symbol,
#include "shim/hook/hooks.def"
};

}  // namespace

TEST_CASE("the exports are the hooks of hooks.def and nothing else, without a version") {
  const Names exported = last_words({"nm", "-D", "--defined-only", SHIM}, " T ");
  CHECK(exported == kTable);
  const Names all = last_words({"nm", "-D", "--defined-only", SHIM}, " ");
  CHECK(all == kTable);
}

TEST_CASE("it needs only libc's parts") {
  const Names needed = last_words({"readelf", "-d", "-W", SHIM}, "(NEEDED)");
  REQUIRE(!needed.empty());
  const Names allowed{"[libc.so.6]", "[ld-linux-x86-64.so.2]", "[ld-linux-aarch64.so.1]",
                      "[libm.so.6]", "[libpthread.so.0]",      "[libdl.so.2]"};
  for (const std::string& name : needed) {
    INFO(name);
    CHECK(allowed.contains(name));
  }
}

TEST_CASE("no text of it is writable and no stack of it executable") {
  const Outcome outcome = run({"readelf", "-l", "-W", SHIM});
  CHECK(outcome.out.find("RWE") == std::string::npos);
  const Outcome dynamic = run({"readelf", "-d", "-W", SHIM});
  CHECK(dynamic.out.find("TEXTREL") == std::string::npos);
}
