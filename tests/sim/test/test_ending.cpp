// Whole processes: how they end while work is pending, what their children have of it, and what the
// SIM_ variables change. Every case runs in a child that has never used the driver before.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <thread>

#include "gate.hpp"
#include "timed.hpp"

TEST_CASE("a process ends with work pending, a host function inside, or a whole queue of them") {
  const int kind = GENERATE(0, 1, 2);
  static Gate& gate = *new Gate;  // kept: it cannot be destroyed with a thread in it
  const int code = in_child([kind]() -> int {
    CU(cuInit)(0);
    OwnContext* context = new OwnContext;  // never destroyed: the process ends first
    static_cast<void>(context);
    const Kernels kernels;
    const CUstream stream = new_stream();
    kernels.spin(stream, kind == 0 ? long_time : 1000);
    if (kind == 1) CU(cuLaunchHostFunc)(stream, Gate::pass, &gate);
    if (kind == 1) gate.wait_entered();
    if (kind == 2)
      for (int i = 0; i < 1000; ++i) CU(cuLaunchHostFunc)
    (
        stream, [](void*) { std::this_thread::sleep_for(std::chrono::milliseconds(1)); }, nullptr);
    alarm(20);
    std::exit(0);
  });
  CHECK(code == 0);
}

TEST_CASE("a process may end from within a host function") {
  CHECK(in_child([]() -> int {
          CU(cuInit)(0);
          OwnContext* context = new OwnContext;
          static_cast<void>(context);
          CU(cuLaunchHostFunc)
          (
              nullptr, [](void*) { std::exit(7); }, nullptr);
          alarm(20);
          pause();
          return 1;
        }) == 7);
}

TEST_CASE("a child of a process with work pending has no part in it and ends as any other") {
  CHECK(in_child([] {
          OwnContext context;
          const Kernels kernels;
          const CUstream stream = new_stream();
          kernels.spin(stream, 20'000'000);
          for (int i = 0; i < 50; ++i) {
            const pid_t child = fork();
            if (!child) {
              alarm(20);
              std::exit(CU(cuStreamSynchronize)(stream) == CUDA_ERROR_NOT_INITIALIZED ? 0 : 1);
            }
            int status = 0;
            waitpid(child, &status, 0);
            if (status) return 2;
          }
          return CU(cuStreamSynchronize)(stream) == CUDA_SUCCESS ? 0 : 3;
        }) == 0);
}
TEST_CASE("a child writes its own statistics, whatever its parent's threads were doing in the driver") {
  CHECK(in_child([] {
          setenv("SIM_STATS", "/tmp/sim-test-ending-%p", 1);
          OwnContext context;
          std::atomic<bool> enough{false};
          std::thread caller([&] {
            CU(cuCtxSetCurrent)(context.handle);
            while (!enough) free_bytes();
          });
          int bad = 0;
          for (int i = 0; i < 100; ++i) {
            const pid_t child = fork();
            if (!child) {
              alarm(20);
              std::exit(0);
            }
            int status = 0;
            waitpid(child, &status, 0);
            const std::string path = "/tmp/sim-test-ending-" + std::to_string(child);
            if (status || unlink(path.c_str())) ++bad;
          }
          enough = true;
          caller.join();
          return bad;
        }) == 0);
}

TEST_CASE("another order of independent work is another possible one, the same for the same seed") {
  const auto order = [](const char* seed) {
    int result[2];
    REQUIRE(pipe(result) == 0);
    const int code = in_child([&] {
      if (seed) setenv("SIM_SCHED", seed, 1);
      OwnContext context;
      const Kernels kernels;
      const CUdeviceptr block = block_of(4 * kib);
      for (unsigned i = 1; i <= 8; ++i) kernels.fill(new_stream(), block, i);
      REQUIRE(CU(cuCtxSynchronize)() == CUDA_SUCCESS);
      const unsigned last = peek(block);
      return write(result[1], &last, sizeof last) == sizeof last ? 0 : 1;
    });
    REQUIRE(code == 0);
    unsigned last = 0;
    REQUIRE(read(result[0], &last, sizeof last) == sizeof last);
    return last;
  };
  CHECK(order(nullptr) == 8);
  CHECK(order("1") == order("1"));
  std::vector<unsigned> seen;
  for (const char* seed : {"1", "2", "3", "4", "5", "6"}) seen.push_back(order(seed));
  CHECK(std::count(seen.begin(), seen.end(), 8u) < 6);
}
TEST_CASE("a guess that does not exist, or no number, is refused at the start with one line") {
  for (const char* guess : {"no_such_guess=1", "free_synchronises", "free_synchronises=yes", "=1"}) {
    int text[2];
    REQUIRE(pipe(text) == 0);
    CHECK(in_child([&] {
            signal(SIGABRT, SIG_DFL);  // not the handler of the test's own process
            dup2(text[1], 2);
            setenv("SIM_GUESS", guess, 1);
            return static_cast<int>(CU(cuInit)(0));
          }) == -SIGABRT);
    close(text[1]);
    char said[4096] = {};
    const ssize_t length = read(text[0], said, sizeof said - 1);
    REQUIRE(length > 0);
    CHECK(std::string(said).find("SIM_GUESS=") != std::string::npos);
    CHECK(std::string(said, static_cast<std::size_t>(length)).find('\n') ==
          static_cast<std::size_t>(length) - 1);
    close(text[0]);
  }
}
