// `tidepool run` as a user sees it: exit codes, streams, signals, refusals, what is kept.
#include <sys/stat.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <random>

#include "harness.hpp"

using golden::Process;
using golden::Result;
using golden::run;
using golden::run_at_terminal;

namespace {

std::vector<std::string> shell(const std::string& script, std::vector<std::string> flags = {}) {
  std::vector<std::string> arguments{"run"};
  arguments.insert(arguments.end(), flags.begin(), flags.end());
  for (const char* word : {"--", "/bin/bash", "-c"}) arguments.emplace_back(word);
  arguments.push_back(script);
  return arguments;
}

std::size_t lines(const std::string& text) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

// What the shim of one process would leave, as a shell command.
std::string leave_report(const std::string& name, const std::string& asked, const std::string& times) {
  return "echo '{\"schema\":1,\"pid\":1," + times +
         ",\"frameworks\":[{\"name\":\"XLA_PYTHON_CLIENT_ALLOCATOR\",\"value\":\"cuda_async\"}],"
         "\"devices\":[{\"ordinal\":0,\"uuid\":\"GPU-a\",\"total_bytes\":85899345920,"
         "\"requested_peak_bytes\":" +
         asked +
         ",\"reserved_peak_bytes\":2147483648,\"allocations\":3,\"frees\":1,\"oom\":[]}]}' > "
         "$TIDEPOOL_RUN/" +
         name + ".json;";
}
const std::string kOneReport = leave_report(
    "1", "1073741824", "\"started\":\"2026-01-01T00:00:00Z\",\"ended\":\"2026-01-01T00:00:09Z\"");

}  // namespace

TEST_CASE("the exit code is the command's") {
  CHECK(run({shell("exit 0"), {}, ""}).exit_code == 0);
  CHECK(run({shell("exit 7"), {}, ""}).exit_code == 7);
  CHECK(run({shell("kill -9 $$"), {}, ""}).exit_code == 137);
  CHECK(run({shell("kill -SEGV $$"), {}, ""}).exit_code == 139);
}

TEST_CASE("a command that cannot be started") {
  const Result missing = run({{"run", "--", "no-such-command-here"}, {}, ""});
  CHECK(missing.exit_code == 127);
  CHECK(missing.err == "tidepool: no-such-command-here: not found in PATH\n");
  const Result nowhere = run({{"run", "--", "/no/such/command"}, {}, ""});
  CHECK(nowhere.exit_code == 127);
  CHECK(nowhere.err == "tidepool: /no/such/command: No such file or directory\n");
  const Result folder = run({{"run", "--", "/usr"}, {}, ""});
  CHECK(folder.exit_code == 126);
  CHECK(folder.err == "tidepool: /usr: Permission denied\n");
}

TEST_CASE("stdin and stdout are the command's, byte by byte") {
  std::mt19937 random(3);
  std::string bytes(1 << 20, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  const Result result = run({{"run", "--", "cat"}, {}, bytes});
  CHECK(result.exit_code == 0);
  CHECK((result.out == bytes));
  CHECK(result.err.empty());
}

TEST_CASE("arguments arrive as they were given") {
  const std::vector<std::string> odd{"a b", "", "[1,2]", "--mode", "--", "-h", "--help", "*", "{}", "++"};
  std::string expected;
  for (const std::string& word : odd) expected += word + "|";
  for (const bool separated : {true, false}) {
    std::vector<std::string> arguments{"run", "--mode", "prealloc"};
    if (separated) arguments.emplace_back("--");
    for (const char* word : {"printf", "%s|"}) arguments.emplace_back(word);
    arguments.insert(arguments.end(), odd.begin(), odd.end());
    const Result result = run({arguments, {}, ""});
    CHECK(result.exit_code == 0);
    CHECK(result.out == expected);
  }
}

TEST_CASE("flags become variables; a flag goes before the environment") {
  const Result result = run({shell("echo $TIDEPOOL_MODE $TIDEPOOL_FRACTION $TIDEPOOL_LIMIT $TIDEPOOL_WAIT "
                                   "$TIDEPOOL_FAST_FREE $TIDEPOOL_LOG_FILE",
                                   {"--mode=prealloc", "--fraction", "0.5", "--limit", "0=8GiB,GPU-a=50%",
                                    "--wait", "forever", "--fast-free", "1", "--log-file", "/x/%p"}),
                             {{"TIDEPOOL_MODE", "off"}},
                             ""});
  CHECK(result.out == "prealloc 0.5 0=8GiB,GPU-a=50% forever 1 /x/%p\n");
  CHECK(run({shell("echo [$TIDEPOOL_LIMIT]", {"--limit", ""}), {{"TIDEPOOL_LIMIT", "1GiB"}}, ""}).out ==
        "[]\n");
  CHECK(run({shell("echo $TIDEPOOL_LIMIT"), {{"TIDEPOOL_LIMIT", "1GiB"}}, ""}).out == "1GiB\n");
}

TEST_CASE("what is not understood is refused before anything runs, in one line") {
  struct Row {
    std::vector<std::string> flags;
    std::string line;
  };
  const Row rows[] = {
      {{"--mode", "fast"},
       "TIDEPOOL_MODE=fast is not understood; allowed: ondemand, prealloc, managed, passthrough or off"},
      {{"--fraction", "2"}, "TIDEPOOL_FRACTION=2 is not understood; allowed: a number from 0 to 1"},
      {{"--wait", "-1"}, "TIDEPOOL_WAIT=-1 is not understood; allowed: auto, forever, or seconds (0: never)"},
      {{"--moed", "off"}, "The following argument was not expected: --moed. See tidepool run --help"},
  };
  for (const Row& row : rows) {
    const Result result = run({shell("echo ran", row.flags), {}, ""});
    CHECK(result.exit_code == 2);
    CHECK(result.out.empty());
    CHECK(result.err == "tidepool: " + row.line + "\n");
  }
  const Result inherited = run({shell("echo ran"), {{"TIDEPOOL_LOG", "loud"}}, ""});
  CHECK(inherited.exit_code == 2);
  CHECK(inherited.out.empty());
  CHECK(inherited.err ==
        "tidepool: TIDEPOOL_LOG=loud is not understood; allowed: off, error, warn, info or debug\n");
  CHECK(run({{"run"}, {}, ""}).err == "tidepool: run needs a command. See tidepool run --help\n");
  CHECK(run({{"run", "--mode"}, {}, ""}).exit_code == 2);
}

TEST_CASE("the library comes first in LD_PRELOAD, once, and the user's entries stay") {
  const std::string ours = HARMLESS_LIBRARY;
  CHECK(run({shell("echo $LD_PRELOAD"), {}, ""}).out == ours + "\n");
  CHECK(run({shell("echo $LD_PRELOAD"), {{"LD_PRELOAD", "libm.so.6 libdl.so.2"}}, ""}).out ==
        ours + ":libm.so.6:libdl.so.2\n");
  CHECK(run({{"run", "--", TIDEPOOL_COMMAND, "run", "--", "printenv", "LD_PRELOAD"}, {}, ""}).out ==
        ours + "\n");
}

TEST_CASE("without a library the command runs all the same") {
  const Result result =
      run({shell("echo ran [$LD_PRELOAD]; exit 5"), {{"TIDEPOOL_LIBRARY", "/nonexistent/lib.so"}}, ""});
  CHECK(result.exit_code == 5);
  CHECK(result.out == "ran []\n");
  CHECK(result.err ==
        "tidepool: /nonexistent/lib.so cannot be read (No such file or directory); the command runs without "
        "it. Build it, or set TIDEPOOL_LIBRARY to where it is.\n");
}

TEST_CASE("the processes of a command get a folder of their own, private and gone afterwards") {
  const Result result = run({shell("stat -c %a $TIDEPOOL_RUN; echo $TIDEPOOL_RUN"), {}, ""});
  CHECK(result.out.substr(0, 4) == "700\n");
  CHECK_FALSE(std::filesystem::exists(result.out.substr(4, result.out.size() - 5)));
}

TEST_CASE("signals sent to it reach the command, once") {
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2}) {
    INFO("signal " << signal);
    Process process({shell("n=0; trap 'n=$((n+1))' TERM INT HUP QUIT USR1 USR2; echo ready;"
                           "while [ $n = 0 ]; do sleep 0.02; done; sleep 0.1; exit $((40+n))"),
                     {},
                     ""});
    process.wait_for_output("ready");
    ::kill(process.pid(), signal);
    CHECK(process.wait().exit_code == 41);
  }
}

TEST_CASE("a command that a signal ends is told from one that exits") {
  Process process({{"run", "--", "/bin/bash", "-c", "echo ready; exec sleep 60"}, {}, ""});
  process.wait_for_output("ready");
  ::kill(process.pid(), SIGTERM);
  CHECK(process.wait().exit_code == 128 + SIGTERM);
}

TEST_CASE("Ctrl-C at a terminal reaches the command once, which may take its time to end") {
  const Result result =
      run_at_terminal({shell("n=0; trap 'n=$((n+1))' INT; echo ready; while [ $n = 0 ]; do sleep 0.02; done;"
                             "sleep 0.3; echo ending; exit $((40+n))"),
                       {},
                       ""},
                      "ready", "\x03");
  CHECK(result.exit_code == 41);
  CHECK(result.out.find("ending") != std::string::npos);
}

TEST_CASE("at a terminal two lines sum up") {
  const Result result = run_at_terminal({shell(kOneReport), {}, ""}, "", "");
  CHECK(result.exit_code == 0);
  CHECK(lines(result.out) == 2);
  CHECK(result.out.find("tidepool: GPU 0: 1.0 GiB asked for at the peak, 2.0 GiB held of 80.0 GiB, by 1 of 1 "
                        "process; set for it: XLA_PYTHON_CLIENT_ALLOCATOR=cuda_async\r\n") == 0);
  CHECK(
      result.out.find("tidepool: next time: the same, or --mode prealloc --fraction 0.02 to have it all from "
                      "the start; all of it: tidepool report /") != std::string::npos);
  CHECK(run_at_terminal({shell("true"), {}, ""}, "", "").out ==
        "tidepool: no process of the command reached a CUDA driver through it\r\n");
}

TEST_CASE("anywhere else nothing is added to either stream") {
  const Result result = run({shell(kOneReport + "echo out; echo err >&2"), {}, ""});
  CHECK(result.out == "out\n");
  CHECK(result.err == "err\n");
}

TEST_CASE("--json sums up on stderr for programs") {
  const Result result = run({shell(kOneReport, {"--json"}), {}, ""});
  CHECK(result.out.empty());
  CHECK(lines(result.err) == 1);
  CHECK(result.err.find("\"peaks_are\":\"counted\"") != std::string::npos);
  CHECK(result.err.find("\"exit_code\":0") != std::string::npos);
}

TEST_CASE("reports are gathered, kept in the user's folder, and shown") {
  const std::string other =
      leave_report("2", "5", "\"started\":\"2026-01-01T00:00:03Z\",\"ended\":\"2026-01-01T00:00:04Z\"");
  Process process({shell(kOneReport + other + "printf '{\"sch' > $TIDEPOOL_RUN/3.json; exit 4",
                         {"--report", "gathered.json"}),
                   {},
                   ""});
  // A relative path is where the user is.
  const Result result = process.wait();
  CHECK(result.exit_code == 4);
  CHECK(result.err.empty());
  const std::string gathered = golden::read_file("gathered.json");
  std::filesystem::remove("gathered.json");
  CHECK(gathered.find("\"peaks_are\": \"sum of peaks, an upper bound\"") != std::string::npos);
  CHECK(gathered.find("\"3.json is cut off; its process may have been killed while it wrote\"") !=
        std::string::npos);
  CHECK(gathered.find("\"exit_code\": 4") != std::string::npos);
  const std::filesystem::directory_iterator kept(process.folder() + "/.cache/tidepool/reports");
  CHECK(golden::read_file(kept->path()) == gathered);
}

TEST_CASE("a command without reports leaves none in the user's folder") {
  Process process({shell("true"), {}, ""});
  CHECK(process.wait().exit_code == 0);
  CHECK_FALSE(std::filesystem::exists(process.folder() + "/.cache"));
}

TEST_CASE("what cannot be written costs a line, not the command") {
  const Result result = run({shell(kOneReport + "exit 6", {"--report", "/dev/null/report.json"}),
                             {{"XDG_CACHE_HOME", "/dev/null/cache"}},
                             ""});
  CHECK(result.exit_code == 6);
  CHECK(result.err ==
        "tidepool: the report is not kept: /dev/null/cache/tidepool/reports cannot be written (Not a "
        "directory)\n"
        "tidepool: --report: /dev/null/report.json cannot be written (Not a directory)\n");
  const Result folder = run({shell("exit 6"), {{"TMPDIR", "/dev/null"}}, ""});
  CHECK(folder.exit_code == 6);
  CHECK(lines(folder.err) == 1);
}

TEST_CASE("a run within a run reports to both") {
  const std::string inner = kOneReport + "exit 3";
  const Result result =
      run({{"run", "--json", "--", TIDEPOOL_COMMAND, "run", "--", "/bin/bash", "-c", inner}, {}, ""});
  CHECK(result.exit_code == 3);
  CHECK(result.err.find("\"processes\":1") != std::string::npos);
}
