// Plays every recorded program through both policies, and crowds of blocks for the cost curve, and
// prints the figures beside what they may be. The exit code is 1 where one is too large.
//
// The engine alone: its device is a counter. peers.py has whole programs on the simulated GPU beside it.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/bench/memory/cost_curve.hpp"

using namespace tidepool;
using namespace tidepool::bench;

namespace {

const std::vector<std::string> kTraces = {"torch_transformer_async.csv",
                                          "somas_pangu_13B.csv",
                                          "somas_bert_base.csv",
                                          "somas_resnet50.csv",
                                          "somas_tiny_bert.csv",
                                          "hta_reco_v100.csv",
                                          "jax_gpt_async.csv",
                                          "tf_mlp_async.csv",
                                          "minimalloc_A.csv",
                                          "minimalloc_F.csv"};
const std::vector<std::string> kPolicies = {"ondemand", "prealloc"};

double mib(Bytes bytes) { return static_cast<double>(bytes) / static_cast<double>(kMiB); }

nlohmann::json to_json(const std::vector<Check>& checks) {
  nlohmann::json list = nlohmann::json::array();
  for (const Check& check : checks)
    list.push_back(
        {{"what", check.what}, {"value", check.value}, {"limit", check.limit}, {"ok", check.ok()}});
  return list;
}

nlohmann::json to_json(const Measured& measured) {
  nlohmann::json samples = nlohmann::json::array();
  for (const Sample& sample : measured.samples) samples.push_back({sample.event, sample.live, sample.held});
  return {{"asked_peak", measured.asked_peak},
          {"held_peak", measured.held_peak},
          {"rounding_at_peak", measured.rounding},
          {"held_at_end", measured.held_at_end},
          {"map_operations_per_1000", measured.operations},
          {"fences", measured.fences},
          {"nanoseconds_per_event", measured.nanoseconds},
          {"samples", samples}};
}

// All rows of one table; says whether every row is as it should be.
class Table {
 public:
  bool good() const { return good_; }
  nlohmann::json rows = nlohmann::json::array();

 protected:
  void add(nlohmann::json row, const std::vector<Check>& checks) {
    row["checks"] = to_json(checks);
    row["verdict"] = verdict_of(checks);
    std::printf("%s\n", verdict_of(checks).c_str());
    std::fflush(stdout);
    rows.push_back(row);
    for (const Check& check : checks) good_ = good_ && check.ok();
  }

 private:
  bool good_ = true;
};

class Replays : public Table {
 public:
  Replays() {
    std::printf(
        "Recorded programs, 80 GiB; asked: live; maps: operations in the second half, per 1,000\n"
        "events; rounding: at the peak; end: held after everything is freed and trim\n\n"
        "%-28s %-9s %9s %9s %6s %6s %9s %7s %7s %7s  %s\n",
        "trace", "policy", "asked MiB", "held MiB", "ratio", "maps", "rounding", "end MiB", "fences",
        "ns/evt", "verdict");
  }

  void row(const std::string& trace, const std::string& policy) {
    const Measured measured = measure(policy, testing::read_trace(trace));
    const auto asked = static_cast<double>(measured.asked_peak);
    const std::string name = std::filesystem::path(trace).stem();
    std::printf("%-28s %-9s %9.1f %9.1f %6.3f %6.1f %8.3f%% %7.1f %7d %7.1f  ", name.c_str(), policy.c_str(),
                mib(measured.asked_peak), mib(measured.held_peak),
                static_cast<double>(measured.held_peak) / asked, measured.operations,
                static_cast<double>(measured.rounding) * 100 / asked, mib(measured.held_at_end),
                measured.fences, measured.nanoseconds);
    nlohmann::json row = to_json(measured);
    row["trace"] = name;
    row["policy"] = policy;
    add(std::move(row), checks_of(trace, policy, measured));
  }
};

class Curves : public Table {
 public:
  Curves() {
    std::printf(
        "\nOne of many blocks replaced by one of another size (512 B - 8 MiB, one stream), ns an "
        "operation\n\n"
        "%-9s %9s %9s %11s %14s %14s  %s\n",
        "policy", "live", "ns/op", "operations", "malloc B/block", "resident B/blk", "verdict");
  }

  void row(const std::string& policy) {
    const auto curve = cost_curve(policy);
    nlohmann::json points = nlohmann::json::array();
    for (const CostPoint& point : curve) {
      std::printf("%-9s %9zu %9.1f %11zu %14.1f %14.1f  %s", policy.c_str(), point.live, point.nanoseconds,
                  point.operations, point.host_bytes, point.host_resident,
                  &point == &curve.back() ? "" : "\n");
      points.push_back({{"live", point.live},
                        {"nanoseconds", point.nanoseconds},
                        {"operations", point.operations},
                        {"host_bytes", point.host_bytes},
                        {"host_resident_bytes", point.host_resident}});
    }
    add({{"policy", policy}, {"points", points}}, checks_of(curve));
  }
};

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Replays recorded allocation traces through tidepool's policies.");
  std::string json_path;
  std::string only;
  std::vector<std::string> traces = kTraces;
  std::vector<std::string> more;
  bool no_curve = false;
  app.add_option("--json", json_path, "Write the figures there, with memory over time");
  app.add_option("--only", only, "Only traces whose name has this in it");
  app.add_option("TRACE", more, "Files to play too, by their full paths");
  app.add_flag("--no-curve", no_curve, "Leave the cost curve out: it takes a minute");
  CLI11_PARSE(app, argc, argv);

  traces.insert(traces.end(), more.begin(), more.end());

  try {
    Replays replays;
    for (const std::string& trace : traces)
      for (const std::string& policy : kPolicies)
        if (trace.find(only) != std::string::npos) replays.row(trace, policy);
    nlohmann::json all = {{"replays", replays.rows}};
    bool good = replays.good();
    if (!no_curve) {
      Curves curves;
      for (const std::string& policy : kPolicies) curves.row(policy);
      all["cost_curves"] = curves.rows;
      good = good && curves.good();
    }
    if (!json_path.empty() && !(std::ofstream(json_path) << all << '\n'))
      throw std::runtime_error("cannot write " + json_path);
    return good ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "replay: %s\n", error.what());
    return 2;
  }
}
