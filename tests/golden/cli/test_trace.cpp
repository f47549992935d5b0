// `tidepool trace`: the summary, each format's shape, and what is said of files that are no trace.
#include <sys/wait.h>
#include <unistd.h>
#include <catch2/catch.hpp>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "harness.hpp"
#include "shim/trace/recorder.hpp"

using namespace tidepool;
using golden::Result;
using golden::run;

namespace {

// A page of the arena, three blocks in it, one of them freed; a block of the driver's; a refusal.
class Recorded {
 public:
  Recorded() {
    const pid_t child = fork();
    if (child == 0) {
      record();
      _exit(0);
    }
    int status = 1;
    waitpid(child, &status, 0);
    REQUIRE(status == 0);
  }
  ~Recorded() { std::filesystem::remove(path); }
  Recorded(const Recorded&) = delete;
  Recorded& operator=(const Recorded&) = delete;

  const std::string path = std::filesystem::absolute("cli-trace-file").string();

 private:
  void record() const {
    trace::Options options{.path = path, .mode = "ondemand", .command = {"python", "train.py"}, .most = kGiB};
    if (!trace::start(options).empty()) _exit(1);
    trace::add_device(0, "GPU-1", "H100", 80 * kGiB);
    const std::uint64_t page = 64 * kGiB;
    note({.action = trace::Action::grow, .address = page, .size = kPage, .held = kPage});
    for (const std::uint64_t offset : {0, 4096, 8192})
      note({.action = trace::Action::allocate,
            .family = trace::Family::stream_ordered,
            .source = trace::Source::arena,
            .address = page + offset,
            .size = 1000,
            .stream = 5,
            .held = kPage});
    note({.action = trace::Action::free, .address = page + 4096, .size = 1000, .stream = 5, .held = kPage});
    note({.action = trace::Action::allocate,
          .family = trace::Family::synchronous,
          .source = trace::Source::driver,
          .address = 8 * kGiB,
          .size = 3 * kMiB,
          .held = kPage + 3 * kMiB});
    note({.action = trace::Action::refuse, .size = 100 * kGiB, .held = kPage + 3 * kMiB});
    trace::note_end();
  }
  static void note(const trace::Event& event) { trace::write(event, trace::now()); }
};

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

}  // namespace

TEST_CASE("a trace in a few lines: who, how it ended, what was live at most and in which sizes") {
  const Recorded recorded;
  const Result result = run({{"trace", recorded.path}, {}, ""});
  CHECK(result.exit_code == 0);
  CHECK(result.err.empty());
  for (const char* part :
       {"command            python train.py\n", "by itself, after", "events             7\n",
        "  allocations      4\n", "  frees            1\n", "  refused          1\n",
        "  live, peak       3.0 MiB at ", "  held, peak       5.0 MiB\n",
        "    up to 4.0 MiB  3.0 MiB in 1 block\n", "    up to 1.0 KiB  2.0 KiB in 2 blocks\n"})
    CHECK_THAT(result.out, Catch::Contains(part));
}

TEST_CASE("a trace as csv has a header and one line for each event") {
  const Recorded recorded;
  const Result result = run({{"trace", recorded.path, "--to", "csv"}, {}, ""});
  CHECK(result.exit_code == 0);
  const std::vector<std::string> lines = lines_of(result.out);
  REQUIRE(lines.size() == 8);
  CHECK_THAT(lines[0], Catch::StartsWith("time_ns,unix_time_ns,event,device,address,size,"));
  CHECK_THAT(lines[2], Catch::Contains(",allocate,0,68719476736,1000,5,") &&
                           Catch::EndsWith(",stream_ordered,arena,0,1000,2097152"));
  CHECK_THAT(lines[5], Catch::Contains(",free,0,68719480832,1000,5,") && Catch::EndsWith(",2000,2097152"));
  CHECK_THAT(lines[7], Catch::Contains(",refuse,0,0,107374182400,"));
}

TEST_CASE("a trace as a page needs nothing from elsewhere, and has a plot and the sizes of the peak") {
  const Recorded recorded;
  const Result result = run({{"trace", recorded.path, "--to", "html"}, {}, ""});
  CHECK(result.exit_code == 0);
  CHECK_THAT(result.out, Catch::StartsWith("<!DOCTYPE html>"));
  for (const char* part : {"<svg ", "<polyline class=\"live\"", "<polyline class=\"held\"",
                           "at most 5.0 MiB;", "<tr><td>4.0 MiB</td><td>1</td><td>3.0 MiB</td></tr>",
                           "<tr><td>1.0 KiB</td><td>2</td><td>2.0 KiB</td></tr>"})
    CHECK_THAT(result.out, Catch::Contains(part));
  for (const char* part : {"http", "src=", "href", "<script", "url("})
    CHECK(result.out.find(part) == std::string::npos);
}

TEST_CASE("a trace goes into the file that -o names, or says why not") {
  const Recorded recorded;
  const std::string out = recorded.path + ".out";
  for (const std::string format : {"csv", "html", "perfetto", "torch-snapshot"}) {
    const Result result = run({{"trace", recorded.path, "--to", format, "-o", out}, {}, ""});
    CHECK(result.exit_code == 0);
    CHECK(result.out.empty());
    CHECK(golden::read_file(out) == run({{"trace", recorded.path, "--to", format}, {}, ""}).out);
    CHECK(golden::read_file(out).size() > 100);
    std::filesystem::remove(out);
  }
  const Result lost = run({{"trace", recorded.path, "--to", "csv", "-o", "/no/such/folder"}, {}, ""});
  CHECK(lost.exit_code == 1);
  CHECK(lost.err == "tidepool: /no/such/folder cannot be written: No such file or directory\n");
}

TEST_CASE("what is no trace, or not whole, is one line and exit code 2, in every format") {
  const Recorded recorded;
  const std::string foreign = recorded.path + ".foreign";
  std::ofstream(foreign) << "time,what\n";
  for (const std::vector<std::string>& to :
       {std::vector<std::string>{}, {"--to", "csv"}, {"--to", "perfetto"}, {"--to", "torch-snapshot"}}) {
    std::vector<std::string> arguments{"trace", foreign};
    arguments.insert(arguments.end(), to.begin(), to.end());
    const Result result = run({arguments, {}, ""});
    CHECK(result.exit_code == 2);
    CHECK(result.out.empty());
    CHECK(result.err == "tidepool: " + foreign + " is no trace of tidepool\n");
  }
  std::filesystem::remove(foreign);
  std::filesystem::resize_file(recorded.path, 100'000);
  const Result cut = run({{"trace", recorded.path}, {}, ""});
  CHECK(cut.exit_code == 2);
  CHECK_THAT(cut.err, Catch::Contains(" is cut off: ") && Catch::EndsWith(" are there\n"));
  const Result none = run({{"trace", "/no/such/file"}, {}, ""});
  CHECK(none.exit_code == 2);
  CHECK(none.err == "tidepool: /no/such/file cannot be read: No such file or directory\n");
  CHECK(run({{"trace", recorded.path, "--to", "xml"}, {}, ""}).exit_code == 2);
}
