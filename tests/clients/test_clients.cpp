// Real frameworks from PyPI, unmodified, on the simulated GPU: same output and exit code with and
// without the shim, exact counts, and the memory that each mode promises.
#include <unistd.h>

#include <catch2/catch.hpp>

#include "tests/preload/harness.hpp"

using namespace tidepool::test;
using Counts = std::map<std::string, std::uint64_t>;

namespace {

constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

struct Client {
  std::string name;  // of its Python environment, see scripts/setup
  std::string program;
};

const std::vector<Client> kClients{{"jax", "jax_gpt.py"},
                                   {"jax-0.10.1", "jax_gpt.py"},
                                   {"numba", "numba_arrays.py"},
                                   {"tinygrad", "tinygrad_tensors.py"}};

std::string python_of(const std::string& client) {
  const Outcome found = run({CLIENT_PYTHON, client});
  INFO("scripts/setup " << client << " installs what is missing: " << found.err);
  REQUIRE(found.exit_code == 0);
  return found.out.substr(0, found.out.find('\n'));
}

Run run_client(const Client& client, const std::string& mode, Environment more = {}) {
  // XLA compiles for a minute where two cores are shared, so each program is compiled once.
  static const ScratchFolder compiled;
  more["JAX_COMPILATION_CACHE_DIR"] = compiled.path(client.name);
  more["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0";
  more["JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES"] = "-1";
  Run run = run_on_simulator({SIMGPU, python_of(client.name), PROGRAMS + ("/" + client.program)}, mode, more,
                             std::chrono::minutes(10));
  INFO(client.name << " in " << (mode.empty() ? "no shim" : mode) << ": " << run.outcome.out
                   << run.outcome.err.substr(0, 4000));
  REQUIRE(run.outcome.exit_code == 0);
  return run;
}

std::uint64_t number(const Run& run, const char* field) {
  REQUIRE(run.report.is_object());
  return run.report.at("devices").at(0).at(field).get<std::uint64_t>();
}

}  // namespace

TEST_CASE("a client's output and exit code are the same in every mode, and its counts exact") {
  for (const Client& client : kClients) {
    const Run plain = run_client(client, "");
    REQUIRE(!plain.outcome.out.empty());
    for (const std::string mode : {"off", "passthrough", "prealloc", "ondemand"}) {
      const Run run = run_client(client, mode);
      INFO(client.name << " in " << mode);
      CHECK(run.outcome.out == plain.outcome.out);
      if (mode == "off") continue;
      REQUIRE(run.report.is_object());
      CHECK(hooked_only(run.report.at("driver_calls").get<Counts>()) == hooked_only(run.calls));
      if (mode == "passthrough") CHECK(run.report.at("intercepted").get<Counts>() == hooked_only(run.calls));
      CHECK(run.report.at("uncovered").empty());
      CHECK(number(run, "allocations") > 0);
    }
  }
}

TEST_CASE("JAX takes 60 of 80 GiB by itself, what prealloc was told, and near what it asks on demand") {
  const Client jax = kClients[0];
  CHECK(number(run_client(jax, "passthrough"), "reserved_peak_bytes") == 60 * kGiB);
  CHECK(number(run_client(jax, "prealloc", {{"TIDEPOOL_FRACTION", "0.5"}}), "reserved_peak_bytes") >= 39 * kGiB);
  const Run ondemand = run_client(jax, "ondemand");
  const double ratio = static_cast<double>(number(ondemand, "reserved_peak_bytes")) /
                       static_cast<double>(number(ondemand, "requested_peak_bytes"));
  CHECK(ratio <= 1.5);
  CHECK(number(ondemand, "reserved_peak_bytes") < 4 * kGiB);
  // Most of the program's allocations never reach the driver.
  CHECK(ondemand.report.at("intercepted").at("cuMemAllocFromPoolAsync") > 100);
  CHECK(ondemand.calls.count("cuMemAllocFromPoolAsync") == 0);
}

TEST_CASE("JAX 0.10.1 and the rest are served by the arena where they allocate by cuMemAlloc") {
  for (const Client& client : {kClients[2], kClients[3]})
    for (const std::string mode : {"ondemand", "prealloc"}) {
      const Run run = run_client(client, mode);
      INFO(client.name << " in " << mode);
      CHECK(run.calls.count("cuMemAlloc_v2") == 0);
      CHECK(run.report.at("intercepted").at("cuMemAlloc_v2") > 0);
    }
}
