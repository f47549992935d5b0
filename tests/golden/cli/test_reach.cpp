// Commands that the shim cannot be in: one line says so, and they run all the same. And the way to reach
// further, --audit.
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "harness.hpp"

using golden::Result;
using golden::run;

namespace {

namespace fs = std::filesystem;

const std::string kEnd = "; it runs, but only programs that it starts may be seen\n";

Result run_command(const std::vector<std::string>& command, const std::string& library = HARMLESS_LIBRARY) {
  std::vector<std::string> arguments{"run", "--"};
  arguments.insert(arguments.end(), command.begin(), command.end());
  return run({arguments, {{"TIDEPOOL_LIBRARY", library}}, ""});
}

// A program that runs with another user's rights.
std::string with_rights_of_its_own(const std::string& folder) {
  if (::getuid() != 0) return "/bin/su";
  const std::string path = folder + "/set-user";
  fs::copy_file("/bin/true", path);
  REQUIRE(::chown(path.c_str(), 65534, 65534) == 0);
  REQUIRE(::chmod(path.c_str(), 04755) == 0);
  return path;
}

}  // namespace

TEST_CASE("a static program runs, and is said to be out of reach; so is a script of one") {
  const Result result = run_command({STATIC_PROGRAM});
  CHECK(result.exit_code == 5);
  CHECK(result.out == "alive\n");
  CHECK(result.err == std::string("tidepool: ") + STATIC_PROGRAM +
                          " is linked statically, so nothing can be put in front of it" + kEnd);
  const golden::Process folder({{"run", "--", "true"}, {}, ""});
  const std::string script = folder.folder() + "/script";
  std::ofstream(script) << "#! " << STATIC_PROGRAM << " argument\n";
  REQUIRE(::chmod(script.c_str(), 0755) == 0);
  const Result by_script = run_command({script});
  CHECK(by_script.exit_code == 5);
  CHECK(by_script.err == result.err);
}

TEST_CASE("a program with rights of its own runs, and is said to be out of reach") {
  const golden::Process folder({{"run", "--", "true"}, {}, ""});
  const std::string program = with_rights_of_its_own(folder.folder());
  const Result result = run_command({program, "--version"});
  CHECK(result.exit_code == 0);
  CHECK(result.err == "tidepool: " + program +
                          " runs with rights of its own (setuid), where the loader takes no preload" + kEnd);
}

TEST_CASE("a musl program runs, by itself and in a command, and is said to be out of reach") {
  const std::string program = MUSL_PROGRAM;
  if (program.empty()) {
    WARN("not tested: no musl-gcc (scripts/setup brings it), or a sanitizer, which needs glibc");
    return;
  }
  const Result result = run_command({program}, TIDEPOOL_SHIM);
  CHECK(result.exit_code == 5);
  CHECK(result.out == "alive\n");
  CHECK(result.err == "tidepool: " + program + " uses musl, for which there is no CUDA driver" + kEnd);
  const Result within = run_command({"/bin/bash", "-c", program}, TIDEPOOL_SHIM);
  CHECK(within.exit_code == 5);
  CHECK(within.out == "alive\n");
  CHECK(within.err.empty());
}

TEST_CASE("an ordinary program, a script and a loader are not said to be out of reach") {
  CHECK(run_command({"true"}).err.empty());
  CHECK(run_command({"ldd", "/bin/true"}).err.empty());  // a script
  CHECK(run_command({"/usr/bin/env", "true"}).err.empty());
  CHECK(run_command({"/lib64/ld-linux-x86-64.so.2", "/bin/true"}).err.empty());
}

TEST_CASE("--audit puts the companion in front of the user's auditors") {
  const std::vector<std::string> command{"run", "--audit", "--", "printenv", "LD_AUDIT"};
  CHECK(run({command, {{"TIDEPOOL_LIBRARY", TIDEPOOL_SHIM}}, ""}).out == TIDEPOOL_COMPANION "\n");
  const Result with_others =
      run({command, {{"TIDEPOOL_LIBRARY", TIDEPOOL_SHIM}, {"LD_AUDIT", "/x/y.so"}}, ""});
  CHECK(with_others.out == TIDEPOOL_COMPANION ":/x/y.so\n");
  CHECK(run({{"run", "--", "printenv", "LD_AUDIT"}, {{"TIDEPOOL_LIBRARY", TIDEPOOL_SHIM}}, ""}).out.empty());
}

TEST_CASE("--audit without the companion is refused in one line") {
  const golden::Process folder({{"run", "--", "true"}, {}, ""});
  const std::string library = folder.folder() + "/libtidepool.so";
  fs::copy_file(HARMLESS_LIBRARY, library);
  const Result result = run({{"run", "--audit", "--", "echo", "ran"}, {{"TIDEPOOL_LIBRARY", library}}, ""});
  CHECK(result.exit_code == 2);
  CHECK(result.out.empty());
  CHECK(result.err ==
        "tidepool: --audit: " + folder.folder() +
            "/libtidepool-audit.so cannot be read (No such file or directory). Leave it out, or "
            "build it.\n");
}
