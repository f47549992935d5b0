// How much memory a client holds under each policy, beyond the matrix: what JAX takes by itself, what it
// takes preallocated, and on demand.
#include <catch2/catch.hpp>

#include "tests/clients/client_run.hpp"

using namespace tidepool::test;

namespace {

constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

std::uint64_t number(const ClientRun& run, const char* field) {
  REQUIRE(run.only().report.is_object());
  return run.only().report.at("devices").at(0).at(field).get<std::uint64_t>();
}

}  // namespace

TEST_CASE("JAX takes 60 of 80 GiB by itself, what prealloc was told, and near what it asks on demand",
          "[jax-memory]") {
  const Client jax{"jax", "jax_gpt.py"};
  CHECK(number(run_client(jax, "passthrough"), "reserved_peak_bytes") == 60 * kGiB);
  CHECK(number(run_client(jax, "prealloc", {{"TIDEPOOL_FRACTION", "0.5"}}), "reserved_peak_bytes") >=
        39 * kGiB);
  const ClientRun ondemand = run_client(jax, "ondemand");
  const double ratio = static_cast<double>(number(ondemand, "reserved_peak_bytes")) /
                       static_cast<double>(number(ondemand, "requested_peak_bytes"));
  CHECK(ratio <= 1.5);
  CHECK(number(ondemand, "reserved_peak_bytes") < 4 * kGiB);
  // Most of the program's allocations never reach the driver.
  CHECK(ondemand.only().report.at("intercepted").at("cuMemAllocFromPoolAsync") > 100);
  CHECK(ondemand.only().calls.count("cuMemAllocFromPoolAsync") == 0);
}
