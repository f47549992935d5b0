// Two clients at a time on one simulated GPU, one preallocated and one on demand: the mode is a matter of
// each process's environment, and each holds what its own says while the other is there.
#include <catch2/catch.hpp>
#include <sstream>

#include "tests/clients/client_run.hpp"

using namespace tidepool::test;

namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

struct Neighbour {
  std::string mode;
  Client client;
};

struct Witness {
  std::string said;
  std::uint64_t held = 0;  // while both were there
  nlohmann::json device;   // of its report
};

std::string command_of(const Neighbour& neighbour) {
  return neighbour.mode + "=" + python_of(neighbour.client.name) + ":" + PROGRAMS + "/" +
         neighbour.client.program;
}

void hear(const std::string& out, std::map<std::string, Witness>& witnesses) {
  std::istringstream lines(out);
  for (std::string mode, verb, rest; lines >> mode >> verb && std::getline(lines >> std::ws, rest);)
    if (verb == "says")
      witnesses[mode].said += rest + "\n";
    else
      witnesses[mode].held = std::stoull(rest);
}

// By mode, on a device of 16 GiB.
std::map<std::string, Witness> together(const Neighbour& one, const Neighbour& other) {
  const ScratchFolder scratch;
  const ClientRun run =
      run_command({"python3", PROGRAMS + std::string("/../questions/neighbours.py"), SIMGPU, command_of(one),
                   command_of(other)},
                  "ondemand", {{"SIM_MACHINE", scratch.path("machine")}, {"SIM_MEMORY", "16GiB"}});
  INFO(run.outcome.out << run.outcome.err.substr(0, 4000));
  REQUIRE(run.outcome.exit_code == 0);
  std::map<std::string, Witness> witnesses;
  hear(run.outcome.out, witnesses);
  REQUIRE(run.processes.size() == 2);
  for (const auto& [pid, process] : run.processes) {
    CHECK(process.verdict.find("broken: ") == std::string::npos);
    witnesses.at(process.report.at("mode")).device = process.report.at("devices").at(0);
  }
  return witnesses;
}

}  // namespace

TEST_CASE("a client preallocated and one on demand share a GPU, each in the mode of its environment",
          "[neighbours]") {
  const Client torch{"torch", "torch_transformer.py"};
  const Client jax{"jax", "jax_repeats.py"};
  std::map<std::string, std::string> alone;  // what each says without the shim and a neighbour
  for (const Client& client : {torch, jax}) alone[client.name] = run_client(client, "").outcome.out;
  for (const auto& [first, second] :
       {std::pair{torch, torch}, std::pair{jax, torch}, std::pair{torch, jax}}) {
    const auto witnesses = together({"prealloc", first}, {"ondemand", second});
    INFO(first.program << " preallocated, " << second.program << " on demand");
    const Witness& prealloc = witnesses.at("prealloc");
    const Witness& ondemand = witnesses.at("ondemand");
    CHECK(prealloc.said == alone.at(first.name));
    CHECK(ondemand.said == alone.at(second.name));
    CHECK(prealloc.held == 12 * kGiB);
    CHECK(ondemand.held > 0);
    CHECK(ondemand.held <= ondemand.device.at("requested_peak_bytes").get<std::uint64_t>() + 64 * kMiB);
    for (const auto& [mode, witness] : witnesses)
      CHECK(witness.held <= witness.device.at("reserved_peak_bytes").get<std::uint64_t>());
  }
}
