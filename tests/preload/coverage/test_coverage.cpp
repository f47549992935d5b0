// The matrix of facts that the shim stands on: ways to reach the driver, times ways to open the library
// that does, times drivers. The calls that the shim counted are the calls that the driver got.
#include <catch2/catch.hpp>

#include "tests/preload/coverage/cells.hpp"

using namespace tidepool::test;

TEST_CASE("no call of a client library passes unseen, however it reaches the driver and is opened") {
  for (const Cell& cell : cells({"now", "lazy", "deepbind", "lazy-deepbind", "deepbind-base", "by-libc"}))
    check_covered(cell, {"off", "passthrough", "ondemand"});
}

TEST_CASE("a driver that is closed and loaded again, perhaps elsewhere, is not called at its old address") {
  for (const Cell& cell : cells({"now", "deepbind"}, 3)) check_covered(cell, {"passthrough", "ondemand"});
}

TEST_CASE("the audit companion sees every client library, in a namespace of its own too") {
  if (left_out("the audit companion")) return;
  for (const Cell& cell : cells({"now", "lazy", "deepbind", "lazy-deepbind", "namespace"}))
    check_covered(cell, {"off", "passthrough", "ondemand"}, kAudited);
  // More rounds than there is room for copies at once: those that are closed make room. (A client that opens
  // the driver by itself does not close it.)
  for (const Cell& cell : cells({"namespace", "deepbind"}, 5))
    if (!cell.client.starts_with("by_") || cell.opening != "namespace")
      check_covered(cell, {"passthrough"}, kAudited);
}

TEST_CASE("a driver in a namespace of its own is named as not seen, and as counted with the companion") {
  if (left_out("namespaces")) return;
  for (const Cell& cell : cells({"namespace"})) {
    if (cell.client.starts_with("by_")) continue;
    const Run plain = open_client(cell, "");
    const Run unseen = open_client(cell, "ondemand");
    INFO(name_of(cell) << ": " << unseen.outcome.out << unseen.outcome.err);
    CHECK(unseen.outcome.out == plain.outcome.out);
    CHECK(unseen.calls == plain.calls);
    REQUIRE(unseen.report.is_object());
    CHECK(unseen.report.at("intercepted").empty());
    CHECK(listed(unseen.report.at("uncovered")).find("libcuda.so.1 is in a namespace of its own") !=
          std::string::npos);
    const Run counted = open_client(cell, "ondemand", kAudited);
    REQUIRE(counted.report.is_object());
    CHECK(listed(counted.report.at("uncovered")).find("libcuda.so.1 is loaded once more") !=
          std::string::npos);
  }
}
