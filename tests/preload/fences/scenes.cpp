// fence_victim SCENE: runs one by name. Here is what the scenes share.
#include "tests/preload/fences/scenes.hpp"

#include <cstring>
#include <vector>

namespace {

constexpr char kModule[] =
    "//tidepool-sim\n"
    "kernel slow = sim_fill 5000000\n"
    "kernel slowest = sim_fill 2000000000\n"
    "kernel fast = sim_fill 2000\n";

void launch(CUfunction kernel, CUstream stream, CUdeviceptr block, std::size_t bytes, std::uint32_t value) {
  std::uint64_t words[] = {block, value, bytes / 4};
  void* parameters[] = {&words[0], &words[1], &words[2]};
  OK(CU(cuLaunchKernel)(kernel, 1, 1, 1, 1, 1, 1, 0, stream, parameters, nullptr));
}

}  // namespace

Kernels::Kernels() {
  CUmodule module = nullptr;
  OK(CU(cuModuleLoadData)(&module, kModule));
  OK(CU(cuModuleGetFunction)(&slow_, module, "slow"));
  OK(CU(cuModuleGetFunction)(&slowest_, module, "slowest"));
  OK(CU(cuModuleGetFunction)(&fast_, module, "fast"));
}

void Kernels::fill_slowly(CUstream stream, CUdeviceptr block, std::size_t bytes, std::uint32_t value) const {
  launch(slow_, stream, block, bytes, value);
}
void Kernels::fill_for_long(CUstream stream, CUdeviceptr block, std::size_t bytes,
                            std::uint32_t value) const {
  launch(slowest_, stream, block, bytes, value);
}
void Kernels::fill(CUstream stream, CUdeviceptr block, std::size_t bytes, std::uint32_t value) const {
  launch(fast_, stream, block, bytes, value);
}

CUstream new_stream() {
  CUstream stream = nullptr;
  OK(CU(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
  return stream;
}

void must_hold(CUdeviceptr block, std::size_t bytes, std::uint32_t value) {
  std::vector<std::uint32_t> words(bytes / 4);
  OK(CU(cuMemcpyDtoH_v2)(words.data(), block, bytes));
  for (const std::uint32_t word : words) HOLDS(word == value);
}

int main(int count, char** arguments) {
  struct Row {
    const char* name;
    void (*run)();
  };
#define ROW(scene) \
  { #scene, scene }
  const Row rows[] = {ROW(used_elsewhere),
                      ROW(freed_in_flight),
                      ROW(freed_in_flight_elsewhere),
                      ROW(context_ends_in_flight),
                      ROW(taken_by_another_stream),
                      ROW(taken_when_short),
                      ROW(taken_when_short_elsewhere),
                      ROW(taken_by_the_next_stream),
                      ROW(taken_by_another_thread),
                      ROW(taken_by_another_context),
                      ROW(taken_in_parts),
                      ROW(handed_back_in_flight),
                      ROW(pool_trimmed_in_flight),
                      ROW(freed_while_waiting),
                      ROW(captured_beside_frees),
                      ROW(captured_beside_all),
                      ROW(storm)};
#undef ROW
  for (const Row& row : rows)
    if (count == 2 && std::strcmp(arguments[1], row.name) == 0) {
      row.run();
      std::printf("done\n");
      return 0;
    }
  std::fprintf(stderr, "usage: fence_victim SCENE\n");
  return 2;
}
