// The parts of the `tidepool` command that decide: the preload list, gathering, the closing lines.
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "shim/cli/library.hpp"
#include "shim/cli/report_store.hpp"
#include "shim/cli/reports.hpp"
#include "shim/cli/summary.hpp"
#include "shim/cli/table.hpp"

using namespace tidepool::cli;
using nlohmann::json;

namespace {

constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

json process(int pid, const char* started, const char* ended, std::vector<json> devices) {
  json report = json::parse(R"({
    "schema": 1, "command": ["python", "train.py"], "mode": "ondemand",
    "settings": {"TIDEPOOL_MODE": {"value": "ondemand", "source": "default"}},
    "frameworks": [{"name": "A", "value": "b"}],
    "intercepted": {"cuMemAlloc_v2": 2, "cuMemFree_v2": 1}, "driver_calls": {"cuMemCreate": 1},
    "uncovered": ["a static part"]})");
  report["pid"] = pid;
  report["started"] = started;
  report["ended"] = ended;
  report["devices"] = std::move(devices);
  return report;
}

json device(int ordinal, const char* uuid, std::uint64_t asked, std::uint64_t held) {
  return {{"ordinal", ordinal},
          {"uuid", uuid},
          {"name", "GPU"},
          {"total_bytes", 80 * kGiB},
          {"limit_bytes", nullptr},
          {"live_bytes", 1},
          {"requested_peak_bytes", asked},
          {"reserved_peak_bytes", held},
          {"reserved_bytes", held},
          {"allocations", asked > 0 ? 2 : 0},
          {"frees", 1},
          {"oom", json::array()}};
}

CommandRun a_run(const char* mode = "ondemand") { return {{"python", "train.py"}, mode, "t0", "t9", 0}; }

std::string problem_of(const std::string& content) {
  const std::string path =
      std::filesystem::temp_directory_path() / ("tidepool-test-" + std::to_string(::getpid()));
  std::ofstream(path) << content;
  std::string problem;
  try {
    read_report(path);
  } catch (const std::runtime_error& error) {
    problem = error.what();
  }
  std::filesystem::remove(path);
  return problem;
}

}  // namespace

TEST_CASE("the preload list has the library in front, once") {
  const std::string ours = "/opt/lib/libtidepool.so";
  struct Row {
    const char* inherited;
    const char* list;
  };
  const Row rows[] = {
      {"", "/opt/lib/libtidepool.so"},
      {"/a.so", "/opt/lib/libtidepool.so:/a.so"},
      {"/a.so:/b.so", "/opt/lib/libtidepool.so:/a.so:/b.so"},
      {"/a.so /b.so", "/opt/lib/libtidepool.so:/a.so:/b.so"},
      {" :/a.so: :", "/opt/lib/libtidepool.so:/a.so"},
      {"/opt/lib/libtidepool.so", "/opt/lib/libtidepool.so"},
      {"/a.so:/opt/lib/libtidepool.so:/b.so", "/opt/lib/libtidepool.so:/a.so:/b.so"},
      {"/another/libtidepool.so:/a.so", "/opt/lib/libtidepool.so:/a.so"},
      {"libjemalloc.so.2", "/opt/lib/libtidepool.so:libjemalloc.so.2"},
  };
  for (const Row& row : rows) {
    INFO(row.inherited);
    CHECK(with_preload(row.inherited, ours) == row.list);
    CHECK(with_preload(row.list, ours) == row.list);
  }
}

TEST_CASE("what cannot be preloaded is said before ld.so says it for every process") {
  CHECK(preload_problem("/nonexistent/libtidepool.so") == "cannot be read (No such file or directory)");
  CHECK(preload_problem("/proc/self/cmdline") == "is not a 64-bit shared object");
  CHECK(preload_problem("/dev/null") == "is not a 64-bit shared object");
  CHECK(preload_problem("/a b/libtidepool.so") ==
        "has a space or a colon in its path, which LD_PRELOAD cannot name");
}

TEST_CASE("one process: its numbers as they were counted") {
  const json gathered = gather(a_run(), {process(1, "t1", "t2", {device(0, "GPU-a", 10, 20)})});
  REQUIRE(gathered["devices"].size() == 1);
  const json& merged = gathered["devices"][0];
  CHECK(merged["requested_peak_bytes"] == 10);
  CHECK(merged["reserved_peak_bytes"] == 20);
  CHECK(merged["peaks_are"] == "counted");
  CHECK(merged["processes"] == 1);
  CHECK(gathered["intercepted"]["cuMemAlloc_v2"] == 2);
  CHECK(gathered["settings"]["TIDEPOOL_MODE"]["value"] == "ondemand");
}

TEST_CASE("processes at the same time: peaks are added, and called a bound") {
  const json gathered = gather(a_run(), {process(2, "t2", "t5", {device(0, "GPU-a", 10, 20)}),
                                         process(1, "t1", "t4", {device(0, "GPU-a", 5, 8)})});
  const json& merged = gathered["devices"][0];
  CHECK(merged["requested_peak_bytes"] == 15);
  CHECK(merged["reserved_peak_bytes"] == 28);
  CHECK(merged["peaks_are"] == "sum of peaks, an upper bound");
  CHECK(merged["allocations"] == 4);
  CHECK(gathered["intercepted"]["cuMemAlloc_v2"] == 4);
  CHECK(gathered["driver_calls"]["cuMemCreate"] == 2);
  CHECK(gathered["frameworks"].size() == 1);
  CHECK(gathered["uncovered"].size() == 1);
  CHECK(gathered["processes"][0]["pid"] == 1);
}

TEST_CASE("processes one after another: the largest counts") {
  const json gathered = gather(a_run(), {process(1, "t1", "t2", {device(0, "GPU-a", 10, 20)}),
                                         process(2, "t3", "t4", {device(0, "GPU-a", 5, 30)}),
                                         process(3, "t3", "t4", {device(0, "GPU-a", 0, 0)})});
  const json& merged = gathered["devices"][0];
  CHECK(merged["requested_peak_bytes"] == 10);
  CHECK(merged["reserved_peak_bytes"] == 30);
  CHECK(merged["peaks_are"] == "counted");
  CHECK(merged["processes"] == 2);
}

TEST_CASE("a device is its UUID, not its ordinal in a process") {
  const json gathered = gather(a_run(), {process(1, "t1", "t2", {device(0, "GPU-a", 1, 1)}),
                                         process(2, "t1", "t2", {device(0, "GPU-b", 2, 2)}),
                                         process(3, "t1", "t2", {device(1, "GPU-a", 4, 4)})});
  REQUIRE(gathered["devices"].size() == 2);
  CHECK(gathered["devices"][0]["uuid"] == "GPU-a");
  CHECK(gathered["devices"][0]["requested_peak_bytes"] == 5);
  CHECK(gathered["devices"][1]["requested_peak_bytes"] == 2);
}

TEST_CASE("reports that lack everything are gathered too") {
  const json gathered =
      gather(a_run(), {json{{"schema", 1}}, json::parse(R"({"schema": 1, "devices": [{}]})")});
  CHECK(gathered["processes"].size() == 2);
  CHECK(gathered["devices"].size() == 1);
  CHECK(usage_line(gathered) == "no process of the command allocated GPU memory");
  CHECK(advice(gathered).empty());
}

TEST_CASE("files that are not reports say what is wrong with them") {
  CHECK(problem_of("") == "is empty; its process may have been killed while it wrote");
  CHECK(problem_of(" \n") == "is empty; its process may have been killed while it wrote");
  CHECK(problem_of("{\"schema\": 1, \"dev") == "is cut off; its process may have been killed while it wrote");
  CHECK(problem_of("hello") == "is not JSON");
  CHECK(problem_of("[1]") == "is not a report of tidepool: it has no schema");
  CHECK(problem_of("{}") == "is not a report of tidepool: it has no schema");
  CHECK(problem_of("{\"schema\": 2}") == "has schema 2; this tidepool reads schema 1");
  CHECK(problem_of("{\"schema\": \"1\"}") == "has schema \"1\"; this tidepool reads schema 1");
  CHECK(problem_of("{\"schema\": 1, \"devices\": 3}") ==
        "is not a report of tidepool: devices is not a list");
  CHECK(problem_of("{\"schema\": 1, \"devices\": [3]}") ==
        "is not a report of tidepool: a device or process is not an object");
  CHECK(problem_of("{\"schema\": 1, \"processes\": [{\"intercepted\": []}]}") ==
        "is not a report of tidepool: intercepted is not an object");
  CHECK(problem_of("{\"schema\": 1}").empty());
}

TEST_CASE("the first closing line: what was asked for and held, by whom, and what was set") {
  const json one = gather(a_run(), {process(1, "t1", "t2", {device(0, "GPU-a", kGiB, 3 * kGiB / 2)}),
                                    process(2, "t1", "t2", {})});
  CHECK(
      usage_line(one) ==
      "GPU 0: 1.0 GiB asked for at the peak, 1.5 GiB held of 80.0 GiB, by 1 of 2 processes; set for it: A=b");
  const json two =
      gather(a_run(),
             {process(1, "t1", "t3", {device(0, "GPU-a", kGiB, 2 * kGiB)}),
              process(2, "t1", "t3", {device(0, "GPU-a", kGiB, 2 * kGiB), device(1, "GPU-b", kGiB, kGiB)})});
  CHECK(
      usage_line(two) ==
      "GPU 0: at most 2.0 GiB asked for at the peak, at most 4.0 GiB held of 80.0 GiB, by 2 of 2 processes; "
      "GPU 1: 1.0 GiB asked for at the peak, 1.0 GiB held of 80.0 GiB, by 1 of 2 processes; set for it: A=b");
  CHECK(usage_line(gather(a_run(), {})) == "no process of the command reached a CUDA driver through it");
  CHECK(usage_line(gather(a_run("off"), {})) == "mode off: nothing was counted");
}

TEST_CASE("the second closing line: what to use next time") {
  const auto advice_for = [](const char* mode, std::uint64_t asked, std::uint64_t held) {
    return advice(gather(a_run(mode), {process(1, "t1", "t2", {device(0, "GPU-a", asked, held)})}));
  };
  CHECK(advice_for("ondemand", 8 * kGiB, 10 * kGiB) ==
        "next time: the same, or --mode prealloc --fraction 0.11 to have it all from the start");
  CHECK(advice_for("ondemand", 1, 10) ==
        "next time: the same, or --mode prealloc --fraction 0.01 to have it all from the start");
  CHECK(advice_for("ondemand", 79 * kGiB, 80 * kGiB) ==
        "next time: the same, or --mode prealloc --fraction 1.00 to have it all from the start");
  CHECK(advice_for("prealloc", 8 * kGiB, 60 * kGiB) ==
        "next time: --fraction 0.11 is enough, or --mode ondemand");
  CHECK(advice_for("prealloc", 50 * kGiB, 60 * kGiB) == "next time: the same");
  CHECK(advice_for("passthrough", 8 * kGiB, 60 * kGiB) ==
        "next time: --mode ondemand, to hold only what is in use");

  json full = device(0, "GPU-a", kGiB, kGiB);
  full["oom"] = json::parse(R"([{"entry": "cuMemAlloc_v2", "requested_bytes": 5}])");
  CHECK(advice(gather(a_run(), {process(1, "t1", "t2", {full})})) ==
        "1 allocation was refused; next time: --wait forever if others hold the GPU, else a smaller job");
  full["limit_bytes"] = kGiB;
  CHECK(advice(gather(a_run(), {process(1, "t1", "t2", {full})})) ==
        "1 allocation was refused; next time: a higher --limit");
}

TEST_CASE("kept reports: the newest fifty") {
  const std::string folder =
      std::filesystem::temp_directory_path() / ("tidepool-kept-" + std::to_string(::getpid()));
  std::filesystem::create_directories(folder);
  for (int i = 10; i < 70; ++i)
    std::ofstream(folder + "/20200101T0000" + std::to_string(i) + ".json") << "{}";
  std::ofstream(folder + "/notes.txt") << "not ours";
  const std::string path = keep_report(folder, json{{"schema", 1}});
  CHECK(std::filesystem::exists(path));
  CHECK(std::filesystem::exists(folder + "/notes.txt"));
  CHECK_FALSE(std::filesystem::exists(folder + "/20200101T000020.json"));
  CHECK(std::filesystem::exists(folder + "/20200101T000021.json"));
  CHECK(std::distance(std::filesystem::directory_iterator(folder), {}) == 51);
  std::filesystem::remove_all(folder);
}

TEST_CASE("text in columns") {
  CHECK(format_table({{"a", "bb"}, {"heading that is long"}, {"ccc", "d"}}, Align::right) ==
        "a    bb\nheading that is long\nccc   d\n");
  CHECK(format_table({{"a", "bb", "c"}, {"ccc", "d", "e"}}, Align::left) == "a    bb  c\nccc  d   e\n");
  CHECK(format_table({{"\u00e9", "x"}, {"ab", "y"}}, Align::left) == "\u00e9   x\nab  y\n");
  CHECK(shorten("abcdefghij", 10) == "abcdefghij");
  CHECK(shorten("abcdefghijk", 10) == "abc...hijk");
  CHECK(printable("a\033[31mb\n") == "a [31mb ");
  CHECK(to_text(json("\xff")) == "\"\xef\xbf\xbd\"");
}

TEST_CASE("an auditor is refused where it would slow every call down") {
  CHECK(audit_problem("2.35") == "");
  CHECK(audit_problem("2.36") == "");
  CHECK(audit_problem("3.0") == "");
  CHECK(audit_problem("2.34") == "needs glibc 2.35 or later, this is 2.34");
  CHECK(audit_problem("2.17") == "needs glibc 2.35 or later, this is 2.17");
  CHECK(audit_problem("musl") == "needs glibc 2.35 or later, this is musl");
}

TEST_CASE("the companion is looked for beside the library") {
  CHECK(find_companion({"/opt/tidepool/libtidepool.so", ""}).path == "/opt/tidepool/libtidepool-audit.so");
  CHECK(find_companion({"/nonexistent/libtidepool.so", ""}).problem ==
        "cannot be read (No such file or directory)");
}
