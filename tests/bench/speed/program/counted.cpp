// A number of warm pairs, or of questions about a host pointer, for an instruction counter: it runs both
// scenes of a kind and divides the difference, so that the start of the process and of the driver does not
// count.
#include "driver.hpp"
#include "scenes.hpp"

namespace speed {
namespace {

constexpr int kFew = 1000;
constexpr int kMany = 11000;

void pairs(int count) {
  const Gpu gpu;
  for (int i = 0; i < count; ++i) gpu.pair_async(64 * kKiB, gpu.stream);
  std::printf("{\"counted\": %d}\n", count);
}

void questions(int count) {
  const Gpu gpu;
  const auto ask = DRIVER_ENTRY(cuPointerGetAttribute);
  const auto pointer = reinterpret_cast<CUdeviceptr>(&gpu);
  unsigned answer = 0;
  for (int i = 0; i < count; ++i) ask(&answer, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, pointer);
  std::printf("{\"counted\": %d}\n", count);
}

}  // namespace

void few_pairs() { pairs(kFew); }
void many_pairs() { pairs(kMany); }
void few_questions() { questions(kFew); }
void many_questions() { questions(kMany); }

}  // namespace speed
