// Stream-ordered allocations and frees among many live blocks.
#include "mix.hpp"
#include "scenes.hpp"

namespace speed {
namespace {

double mix_ns(const Gpu& gpu, Mix& mix) {
  return mix.operation_ns(
      [&](std::size_t bytes) {
        CUdeviceptr block = 0;
        EXPECT(gpu.allocate_async(&block, bytes, gpu.stream));
        return block;
      },
      [&](CUdeviceptr block) { EXPECT(gpu.free_async(block, gpu.stream)); });
}

}  // namespace

void random_mix() {
  const Gpu gpu;
  Mix mix = usual_mix();
  std::printf("{\"ns\": %.2f}\n", mix_ns(gpu, mix));
}

// Two costs: of replacing any block among so many, and of a pair of one size while so many live.
void growth() {
  const Gpu gpu;
  const char* separator = "{";
  for (const std::size_t live : {1'000, 10'000, 100'000, 1'000'000}) {
    Mix mix(live, 512, 4 * kKiB);
    const double mixed = mix_ns(gpu, mix);
    const double pair = best_ns(1000, [&] { gpu.pair_async(4 * kKiB, gpu.stream); });
    std::printf("%s\"mix %zu\": %.2f, \"pair %zu\": %.2f", separator, live, mixed, live, pair);
    separator = ", ";
    for (const CUdeviceptr block : mix.blocks()) EXPECT(gpu.free_async(block, gpu.stream));
  }
  std::printf("}\n");
}

}  // namespace speed
