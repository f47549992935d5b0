// Host functions: whose thread they run on, what they hold up and what they do not.
#include <chrono>
#include <thread>

#include "gate.hpp"
#include "timed.hpp"

TEST_CASE("a host function runs on a thread of the driver's, in the order of its stream") {
  OwnContext context;
  const Kernels kernels;
  const CUstream stream = new_stream();
  struct Seen {
    CUdeviceptr block;
    unsigned before = 0;
    std::thread::id thread;
  } seen{block_of(4 * kib), 0, {}};
  kernels.spin(stream, 1'000'000);
  kernels.fill(stream, seen.block, 1);
  REQUIRE(CU(cuLaunchHostFunc)(
              stream,
              [](void* data) {
                auto& into = *static_cast<Seen*>(data);
                into.before = peek(into.block);
                into.thread = std::this_thread::get_id();
              },
              &seen) == CUDA_SUCCESS);
  kernels.fill(stream, seen.block, 2);
  REQUIRE(CU(cuStreamSynchronize)(stream) == CUDA_SUCCESS);
  CHECK(seen.before == 1);
  CHECK(peek(seen.block) == 2);
  CHECK(seen.thread != std::thread::id{});
  CHECK(seen.thread != std::this_thread::get_id());
}

TEST_CASE("a program that waits for its host function without calling the driver is called back") {
  OwnContext context;
  const Kernels kernels;
  const CUstream stream = new_stream();
  Gate gate;
  kernels.spin(stream, 1'000'000);
  REQUIRE(CU(cuLaunchHostFunc)(stream, Gate::pass, &gate) == CUDA_SUCCESS);
  gate.wait_entered();
  gate.let_go();
  CHECK(CU(cuStreamSynchronize)(stream) == CUDA_SUCCESS);
}

TEST_CASE("what a host function held up goes on when it returns, though nobody calls the driver") {
  OwnContext context;
  const Kernels kernels;
  const CUstream stream = new_stream();
  Gate first, second;
  REQUIRE(CU(cuLaunchHostFunc)(stream, Gate::pass, &first) == CUDA_SUCCESS);
  kernels.spin(stream, 1'000'000);
  REQUIRE(CU(cuLaunchHostFunc)(stream, Gate::pass, &second) == CUDA_SUCCESS);
  first.wait_entered();
  // Long enough for the driver to find that there is nothing it could do by itself.
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  first.let_go();
  {
    std::unique_lock lock(second.mutex);
    CHECK(second.changed.wait_for(lock, std::chrono::seconds(10), [&] { return second.entered; }));
  }
  second.let_go();
  CHECK(CU(cuStreamSynchronize)(stream) == CUDA_SUCCESS);
}

TEST_CASE("a blocked host function holds up its stream and nobody else") {
  OwnContext context;
  const Kernels kernels;
  const CUstream stream = new_stream(), other = new_stream();
  const CUdeviceptr block = block_of(4 * kib);
  Gate gate;
  REQUIRE(CU(cuLaunchHostFunc)(stream, Gate::pass, &gate) == CUDA_SUCCESS);
  kernels.fill(stream, block, 1);
  gate.wait_entered();
  kernels.spin(other);
  kernels.fill(other, block + 4, 2);
  REQUIRE(CU(cuStreamSynchronize)(other) == CUDA_SUCCESS);
  CHECK(peek(block + 4) == 2);
  CHECK(peek(block) == 0);
  CHECK(CU(cuStreamQuery)(stream) == CUDA_ERROR_NOT_READY);
  gate.let_go();
  REQUIRE(CU(cuStreamSynchronize)(stream) == CUDA_SUCCESS);
  CHECK(peek(block) == 1);
}

TEST_CASE("a thread that waits behind a host function lets other threads call the driver") {
  OwnContext context;
  const CUstream stream = new_stream();
  Gate gate;
  REQUIRE(CU(cuLaunchHostFunc)(stream, Gate::pass, &gate) == CUDA_SUCCESS);
  gate.wait_entered();
  std::thread waiter([&] { CU(cuStreamSynchronize)(stream); });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  CHECK(CU(cuMemFree_v2)(0) == CUDA_SUCCESS);
  gate.let_go();
  waiter.join();
  CHECK(CU(cuStreamQuery)(stream) == CUDA_SUCCESS);
}
