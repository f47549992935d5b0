// The screens, to the letter, and what holds for all of them.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <string>

#include "shim/report/advice.hpp"
#include "shim/report/screen.hpp"
#include "tests/unit/report/failures.hpp"

using namespace tidepool;
using namespace tidepool::report;
using namespace tidepool::test;

namespace {

std::string screen_of(const Failure& failure, std::string_view stack = "", std::string_view report = "") {
  Text out;
  write_screen(failure, find_cause(failure), stack, report, out);
  return std::string(out.view());
}

std::string advice_for(const Failure& failure) {
  Advice advice;
  advise(failure, find_cause(failure), advice);
  return std::string(advice.to_do.view());
}

}  // namespace

TEST_CASE("the screen of a program that finds the GPU held by another") {
  Failure failure = refused("cuMemCreate", 256 * kMiB);
  failure.tried_first = 60 * kGiB;
  failure.refusals = 53;
  failure.framework = Part::jax;
  failure.free = 100 * kMiB;
  answer(failure, 80 * kGiB - 100 * kMiB);
  list(failure, 812, 79 * kGiB, "python serve.py --model big").since = 1796000000;
  failure.variable = [](const char* name) -> const char* {
    return std::string_view(name) == "TIDEPOOL_MODE" ? "ondemand" : nullptr;
  };
  CHECK(screen_of(failure, "File \"train.py\", line 12 in <module>\n", "/tmp/report.json") ==
        R"(tidepool: out of memory: cuMemCreate of 256.00 MiB on GPU 0 (pid 1000)
  why       other processes hold the memory
  asked     256.00 MiB, by JAX; tried first: 60.00 GiB; refused 53 times; nothing was served before
  GPU       Made-up H100, 80.00 GiB; 100.00 MiB free
            this process holds 0 bytes: 0 bytes live, 0 bytes cached (ondemand, no limit)
            others hold 79.90 GiB
              pid 812       79.00 GiB     alice, since 11-30 00:53: python serve.py --model big
              924.00 MiB more that no process in sight explains (contexts, other containers)
  set       TIDEPOOL_MODE=ondemand
  python    File "train.py", line 12 in <module>
  do        TIDEPOOL_WAIT=600 python train.py    waits ten minutes for the memory
            or end pid 812, or start it by `tidepool run --mode ondemand -- python serve.py --model big`: it holds what it uses, then
  no use    trimming: this process caches nothing
  report    /tmp/report.json
)");
}

TEST_CASE("the screen of a program that has reached its own limit") {
  Failure failure = refused("cuMemAllocAsync", 2 * kGiB);
  hold(failure, 7 * kGiB);
  failure.limit = 8 * kGiB;
  failure.refused_by = RefusedBy::limit;
  failure.free = 70 * kGiB;
  CHECK(screen_of(failure) ==
        R"(tidepool: out of memory: cuMemAllocAsync of 2.00 GiB on GPU 0 (pid 1000)
  why       this process's own limit, TIDEPOOL_LIMIT: 8.00 GiB, of which 7.00 GiB are live
  asked     2.00 GiB; 12 were served before, 7.00 GiB at the most
  GPU       Made-up H100, 80.00 GiB; 70.00 GiB free
            this process holds 7.00 GiB: 7.00 GiB live, 0 bytes cached (ondemand, limit 8.00 GiB)
            others hold 3.00 GiB
  do        TIDEPOOL_LIMIT=11.5GiB python train.py
  no use    waiting; ending other processes; MEM_FRACTION: the limit is this process's own
)");
}

TEST_CASE("advice names a limit that holds what is needed, and no more than the device can give") {
  Failure failure = refused("cuMemAllocAsync", 2 * kGiB);
  failure.limit = 8 * kGiB;
  failure.refused_by = RefusedBy::limit;
  hold(failure, 7 * kGiB);
  failure.free = 3 * kGiB;  // 70 GiB are others'
  CHECK(advice_for(failure) == "TIDEPOOL_LIMIT=10GiB python train.py\n");
  failure.free = 0;
  failure.requested = 4 * kGiB;
  CHECK(advice_for(failure).find("no limit would be enough") == 0);
}

TEST_CASE("advice never drops what was asked for below nine tenths, nor names another mode") {
  Failure starved = refused("cuModuleLoadData", 0);
  hold(starved, 76 * kGiB);
  starved.largest_block = 76 * kGiB;
  starved.library = Part::cudnn;
  starved.framework = Part::jax;
  CHECK(advice_for(starved).starts_with("XLA_PYTHON_CLIENT_MEM_FRACTION=.9"));
  for (const char* word : {"passthrough", "prealloc"})
    CHECK(advice_for(starved).find(word) == std::string::npos);
}

TEST_CASE("a screen has 40 lines at most, however much there is to say, and no control characters") {
  Failure failure = refused("cuMemAlloc_v2", 30 * kGiB);
  failure.free = 0;
  answer(failure, 80 * kGiB);
  for (long pid = 1; pid <= 16; ++pid)
    list(failure, pid, 4 * kGiB, "python \x1b[31m --with\ta very long line of words");
  failure.machine.unlisted = 200;
  failure.variable = [](const char*) -> const char* { return "a\nb"; };
  std::string stack;
  for (int i = 0; i < 100; ++i) stack += "  File \"some/long/path/of/a/program.py\", line 1 in f\n";
  const std::string screen = screen_of(failure, stack, "/tmp/r");
  INFO(screen);
  CHECK(std::count(screen.begin(), screen.end(), '\n') <= static_cast<long>(kMostLines));
  CHECK(screen.find('\x1b') == std::string::npos);
  CHECK(screen.find('\t') == std::string::npos);
  CHECK(screen.find("\n  report    /tmp/r\n") != std::string::npos);
}

TEST_CASE("without the driver's management library the screen says that it cannot tell who it is") {
  Failure failure = refused("cuMemAlloc_v2", 30 * kGiB);
  failure.free = kGiB;
  failure.machine.state = MachineView::State::silent;
  failure.machine.problem = "not supported on this device";
  const std::string screen = screen_of(failure);
  CHECK(screen.find(
            "others hold 79.00 GiB, by the driver's count; who they are cannot be told: not supported") !=
        std::string::npos);
}
