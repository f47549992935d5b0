// `tidepool env`, `tidepool report` and the help as a user sees them.
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <regex>

#include "harness.hpp"

using golden::Result;
using golden::run;

namespace {

// Files for `report`, gone with the object.
class Files {
 public:
  std::string add(const std::string& name, const std::string& content) {
    std::ofstream(folder_ / name) << content;
    return folder_ / name;
  }
  Files() { std::filesystem::create_directories(folder_); }
  ~Files() { std::filesystem::remove_all(folder_); }
  Files(const Files&) = delete;
  Files& operator=(const Files&) = delete;

 private:
  std::filesystem::path folder_ = std::filesystem::path("cli-show-files");
};

const char* const kPrealloc = R"({
  "schema": 1, "pid": 41, "command": ["python", "train.py"], "mode": "prealloc",
  "settings": {"TIDEPOOL_MODE": {"value": "prealloc", "source": "environment"},
               "TIDEPOOL_FRACTION": {"value": "0.5", "source": "environment"},
               "TIDEPOOL_LOG": {"value": "warn", "source": "default"}},
  "frameworks": [{"name": "XLA_PYTHON_CLIENT_ALLOCATOR", "value": "cuda_async"}],
  "started": "2026-11-30T08:00:00.000Z", "ended": "2026-11-30T08:00:09.000Z",
  "devices": [{"ordinal": 0, "uuid": "GPU-a", "name": "H", "total_bytes": 85899345920, "limit_bytes": null,
    "live_bytes": 0, "requested_peak_bytes": 1073741824, "reserved_peak_bytes": 42949672960,
    "reserved_bytes": 0, "allocations": 642, "frees": 642, "oom": []}],
  "intercepted": {"cuMemAllocFromPoolAsync": 642, "cuMemFreeAsync": 642},
  "driver_calls": {"cuMemCreate": 1}, "uncovered": []})";
const char* const kOnDemand = R"({
  "schema": 1, "pid": 42, "command": ["python", "train.py"], "mode": "ondemand", "settings": {},
  "frameworks": [], "started": "2026-11-30T08:01:00.000Z", "ended": "2026-11-30T08:01:09.000Z",
  "devices": [{"ordinal": 0, "uuid": "GPU-a", "name": "H", "total_bytes": 85899345920,
    "limit_bytes": 8589934592, "live_bytes": 512, "requested_peak_bytes": 1073741824,
    "reserved_peak_bytes": 1342177280, "reserved_bytes": 0, "allocations": 642, "frees": 641,
    "oom": [{"time": "x", "entry": "cuMemAlloc_v2", "requested_bytes": 1, "free_bytes": 0,
             "total_bytes": 85899345920}]}],
  "intercepted": {"cuMemAlloc_v2": 642}, "driver_calls": {"cuMemCreate": 20},
  "uncovered": ["dlmopen namespace"]})";

}  // namespace

TEST_CASE("the differences of two reports: only what differs, and by how much") {
  Files files;
  const std::string one = files.add("prealloc.json", kPrealloc);
  const std::string two = files.add("ondemand.json", kOnDemand);
  const Result result = run({{"report", "--diff", one, two}, {}, ""});
  CHECK(result.exit_code == 0);
  const std::string plain = std::regex_replace(result.out, std::regex(" +"), " ");
  CHECK_THAT(plain, Catch::Contains("\n held, peak 40.0 GiB 1.2 GiB -38.8 GiB (-97 %)\n"));
  CHECK_THAT(plain, Catch::Contains("\n live at end 0 B 512 B +512 B\n"));
  CHECK_THAT(plain, Catch::Contains("\n frees 642 641 -1 (-0 %)\n"));
  CHECK_THAT(plain, Catch::Contains("\n cuMemCreate 1 20 +19 (+1900 %)\n"));
  CHECK_THAT(plain, Catch::Contains("\nmode prealloc ondemand\n"));
  CHECK_THAT(plain, !Catch::Contains("asked, peak") && !Catch::Contains(" allocations"));
  const Result three = run({{"report", "--diff", one, two, one}, {}, ""});
  CHECK(three.exit_code == 2);
  CHECK_THAT(three.err, Catch::Contains("--diff needs two reports"));
}

TEST_CASE("reports side by side") {
  Files files;
  const std::string one = files.add("prealloc.json", kPrealloc);
  const std::string two = files.add("ondemand.json", kOnDemand);
  const Result result = run({{"report", one, two}, {}, ""});
  CHECK(result.exit_code == 0);
  CHECK(result.err.empty());
  CHECK(result.out ==
        R"(report                            cli-show-files/prealloc.json  cli-show-files/ondemand.json
command                                        python train.py               python train.py
mode                                                  prealloc                      ondemand
started                               2026-11-30T08:00:00.000Z      2026-11-30T08:01:00.000Z
ended                                 2026-11-30T08:00:09.000Z      2026-11-30T08:01:09.000Z
processes                                                    1                             1
TIDEPOOL_FRACTION                                          0.5                             -
set: XLA_PYTHON_CLIENT_ALLOCATOR                    cuda_async                             -

device 0
  name                                                       H                             H
  uuid                                                   GPU-a                         GPU-a
  total                                               80.0 GiB                      80.0 GiB
  limit                                                   none                       8.0 GiB
  live at end                                              0 B                         512 B
  asked, peak                                          1.0 GiB                       1.0 GiB
  held, peak                                          40.0 GiB                       1.2 GiB
  held / asked                                           40.00                          1.25
  peaks are                                            counted                       counted
  used by processes                                          1                             1
  allocations                                              642                           642
  frees                                                    642                           641
  out of memory                                              0                             1

calls of the program
  cuMemAllocFromPoolAsync                                  642                             -
  cuMemAlloc_v2                                              -                           642
  cuMemFreeAsync                                           642                             -

calls of tidepool to the driver
  cuMemCreate                                                1                            20
not covered in cli-show-files/ondemand.json: dlmopen namespace
)");
}

TEST_CASE("a report's diagnoses are shown as they were, without control characters") {
  Files files;
  std::string report = kPrealloc;
  report.insert(report.rfind('}'), R"(, "diagnoses": [{"time": "2026-11-30T08:00:05Z",
    "screen": "tidepool: out of memory\n  why       a \u001b limit\n"}, 7])");
  const Result result = run({{"report", files.add("one.json", report)}, {}, ""});
  CHECK(result.exit_code == 0);
  CHECK(result.out.find("\nin cli-show-files/one.json, 2026-11-30T08:00:05Z:\n"
                        "tidepool: out of memory\n  why       a   limit\n") != std::string::npos);
}

TEST_CASE("files that are no reports are named; the rest is shown") {
  Files files;
  const std::string good = files.add("good.json", kPrealloc);
  const std::string cut = files.add("cut.json", std::string(kPrealloc).substr(0, 200));
  const Result some = run({{"report", "missing.json", good, cut}, {}, ""});
  CHECK(some.exit_code == 1);
  CHECK(some.err ==
        "tidepool: missing.json cannot be read (No such file or directory)\n"
        "tidepool: " +
            cut + " is cut off; its process may have been killed while it wrote\n");
  CHECK(some.out.find("prealloc") != std::string::npos);

  const Result none = run({{"report", cut, "/usr", files.add("other.json", R"({"schema": 7})")}, {}, ""});
  CHECK(none.exit_code == 2);
  CHECK(none.out.empty());
  CHECK(none.err == "tidepool: " + cut +
                        " is cut off; its process may have been killed while it wrote\n"
                        "tidepool: /usr cannot be read (Is a directory)\n"
                        "tidepool: cli-show-files/other.json has schema 7; this tidepool reads schema 1\n");
  CHECK(run({{"report"}, {}, ""}).exit_code == 2);
}

TEST_CASE("reports for programs") {
  Files files;
  const Result result = run({{"report", "--json", files.add("one.json", kOnDemand), "missing.json"}, {}, ""});
  CHECK(result.exit_code == 1);
  CHECK(result.out.find("\"reports\": [") != std::string::npos);
  CHECK(result.out.find("\"problem\": \"cannot be read (No such file or directory)\"") != std::string::npos);
  CHECK(result.out.find("\"cuMemAlloc_v2\": 642") != std::string::npos);
}

TEST_CASE("env: values, where they come from, what is allowed") {
  const Result plain = run({{"env"}, {{"TIDEPOOL_MODE", "prealloc"}}, ""});
  CHECK(plain.exit_code == 0);
  CHECK(plain.err.empty());
  CHECK(plain.out.find("VARIABLE             VALUE     SOURCE       ALLOWED") == 0);
  CHECK(plain.out.find(
            "TIDEPOOL_MODE        prealloc  environment  ondemand, prealloc, managed, passthrough or "
            "off        who owns device memory\n") != std::string::npos);
  CHECK(plain.out.find("TIDEPOOL_WAIT        auto      default      auto, forever, or seconds (0: never)") !=
        std::string::npos);
  CHECK(plain.out.find("TF_FORCE_GPU_ALLOW_GROWTH=true") != std::string::npos);
  CHECK(plain.out.find("library: " HARMLESS_LIBRARY "\n") != std::string::npos);

  const Result refused = run({{"env"}, {{"TIDEPOOL_MODE", "fast"}}, ""});
  CHECK(refused.exit_code == 1);
  CHECK(refused.out.find("TIDEPOOL_MODE        fast   REFUSED") != std::string::npos);
  CHECK(refused.out.find("TIDEPOOL_MODE=fast is not understood; allowed: ondemand, prealloc, managed, "
                         "passthrough or off; a process here passes everything through\n") !=
        std::string::npos);
  CHECK(refused.out.find("set for a Python process here: nothing\n") != std::string::npos);

  const Result json = run({{"env", "--json"}, {{"TIDEPOOL_MODE", "fast"}}, ""});
  CHECK(json.exit_code == 1);
  CHECK(json.out.find("\"error\": \"TIDEPOOL_MODE=fast is not understood") != std::string::npos);
}

TEST_CASE("env --library: the path alone, for scripts") {
  CHECK(run({{"env", "--library"}, {}, ""}).out == HARMLESS_LIBRARY "\n");
  const Result missing = run({{"env", "--library"}, {{"TIDEPOOL_LIBRARY", "/nonexistent/lib.so"}}, ""});
  CHECK(missing.exit_code == 1);
  CHECK(missing.out == "/nonexistent/lib.so\n");
  CHECK(missing.err == "tidepool: /nonexistent/lib.so cannot be read (No such file or directory)\n");
}

TEST_CASE("help names what there is, with an example") {
  const Result all = run({{"--help"}, {}, ""});
  CHECK(all.exit_code == 0);
  for (const char* command : {"run", "env", "report", "Example: tidepool run"})
    CHECK(all.out.find(command) != std::string::npos);
  for (const char* command : {"run", "env", "report"}) {
    const Result one = run({{command, "--help"}, {}, ""});
    CHECK(one.exit_code == 0);
    CHECK(one.out.find("Example: ") != std::string::npos);
    CHECK(one.err.empty());
  }
  CHECK(run({{"--version"}, {}, ""}).out == "tidepool " TIDEPOOL_VERSION "\n");
  const Result wrong = run({{"frobnicate"}, {}, ""});
  CHECK(wrong.exit_code == 2);
  CHECK(wrong.out.empty());
  CHECK(wrong.err.find("tidepool: ") == 0);
  CHECK(run({{}, {}, ""}).exit_code == 2);
}

TEST_CASE("the doctor's screen has colour on a terminal alone, and not where NO_COLOR is set") {
  const golden::Start start{{"doctor"}, {}, ""};
  CHECK(golden::run_at_terminal(start, "", "").out.find("\033[") != std::string::npos);
  CHECK(run(start).out.find('\033') == std::string::npos);
  const golden::Start refused{{"doctor"}, {{"NO_COLOR", "1"}}, ""};
  CHECK(golden::run_at_terminal(refused, "", "").out.find('\033') == std::string::npos);
}
