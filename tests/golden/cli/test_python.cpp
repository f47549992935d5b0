// What the built shim sets in a Python process that `tidepool run` starts, and what its children undo.
#include <catch2/catch.hpp>

#include "harness.hpp"

// A sanitizer's runtime would have to be preloaded into Python too.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

namespace {

// Prints what of ours Python's own os.environ holds, in one line.
const std::string kShow =
    "import os; print(*sorted(k + '=' + v for k, v in os.environ.items() if k.startswith(('XLA_', "
    "'TF_FORCE', "
    "'TIDEPOOL_FRAMEWORK_V'))))";

using Variables = std::vector<std::pair<std::string, std::string>>;

std::string shown(const std::vector<std::string>& command, Variables environment) {
  environment.emplace_back("TIDEPOOL_LIBRARY", TIDEPOOL_SHIM);
  std::vector<std::string> arguments{"run", "--"};
  arguments.insert(arguments.end(), command.begin(), command.end());
  const golden::Result result = golden::run({arguments, environment, ""});
  CHECK(result.exit_code == 0);
  CHECK(result.err.empty());
  return result.out;
}

const std::string kPython = "/usr/bin/python3";

}  // namespace

TEST_CASE("Python sees what was set before it started") {
  CHECK(shown({kPython, "-c", kShow}, {{"CUDA_VISIBLE_DEVICES", "0"}}) ==
        "TF_FORCE_GPU_ALLOW_GROWTH=true "
        "TIDEPOOL_FRAMEWORK_VARIABLES=XLA_PYTHON_CLIENT_ALLOCATOR=cuda_async;TF_FORCE_GPU_ALLOW_GROWTH=true "
        "XLA_PYTHON_CLIENT_ALLOCATOR=cuda_async\n");
  CHECK(shown({kPython, "-c", kShow}, {{"CUDA_VISIBLE_DEVICES", "0"}, {"XLA_CLIENT_MEM_FRACTION", ".5"}}) ==
        "TF_FORCE_GPU_ALLOW_GROWTH=true TIDEPOOL_FRAMEWORK_VARIABLES=TF_FORCE_GPU_ALLOW_GROWTH=true "
        "XLA_CLIENT_MEM_FRACTION=.5\n");
  CHECK(shown({kPython, "-c", kShow}, {{"TIDEPOOL_FRAMEWORKS", "keep"}}) == "\n");
  CHECK(shown({kPython, "-c", kShow}, {{"TIDEPOOL_MODE", "passthrough"}}) == "\n");
}

TEST_CASE("a Python child that is to do without undoes it") {
  const std::string parent = "import os, subprocess; os.environ['TIDEPOOL_MODE'] = 'off'; subprocess.run(['" +
                             kPython + "', '-c', os.environ['SHOW']])";
  CHECK(shown({kPython, "-c", parent}, {{"CUDA_VISIBLE_DEVICES", "0"}, {"SHOW", kShow}}) == "\n");
}

TEST_CASE("a process that is not Python sees none of it") {
  CHECK(shown({"/bin/bash", "-c", "env | grep -E 'XLA_|TF_FORCE|FRAMEWORK_V' || true"}, {}).empty());
}

#endif
