// A number of warm pairs, for an instruction counter: it runs both scenes and divides the difference, so that
// the start of the process and of the driver does not count.
#include "driver.hpp"
#include "scenes.hpp"

namespace speed {
namespace {

void play(int count) {
  const Gpu gpu;
  for (int i = 0; i < count; ++i) gpu.pair_async(64 * kKiB, gpu.stream);
  std::printf("{\"pairs\": %d}\n", count);
}

}  // namespace

void few_pairs() { play(1000); }
void many_pairs() { play(11000); }

}  // namespace speed
