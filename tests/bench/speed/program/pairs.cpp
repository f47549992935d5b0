// One allocation and its free, warm, in one thread; and questions about pointers that are the host's.
#include <memory>

#include "driver.hpp"
#include "scenes.hpp"
#include "timing.hpp"

namespace speed {
namespace {

constexpr std::size_t kBytes = 64 * kKiB;

void print_ns(double ns) { std::printf("{\"ns\": %.2f}\n", ns); }

void pair_on(const Gpu& gpu, CUstream stream) {
  print_ns(best_ns(1000, [&] { gpu.pair_async(kBytes, stream); }));
}

// A kernel that takes a second of the device's time, or another, queued again whenever someone has waited
// for it.
class Busy {
 public:
  explicit Busy(CUstream stream, unsigned long long duration_ns = 1'000'000'000)
      : stream_(stream), duration_ns_(duration_ns) {
    CUmodule module = nullptr;
    EXPECT(DRIVER_ENTRY(cuModuleLoadData)(&module, "//tidepool-sim\nkernel sim_spin\n"));
    EXPECT(DRIVER_ENTRY(cuModuleGetFunction)(&spin_, module, "sim_spin"));
  }
  void keep_in_flight() {
    if (query_(stream_) != CUDA_ERROR_NOT_READY) launch();
  }
  void launch() {
    void* parameters[] = {&duration_ns_};
    EXPECT(launch_(spin_, 1, 1, 1, 1, 1, 1, 0, stream_, parameters, nullptr));
  }

 private:
  CUstream stream_;
  CUfunction spin_ = nullptr;
  unsigned long long duration_ns_;
  decltype(::cuStreamQuery)* query_ = DRIVER_ENTRY(cuStreamQuery);
  decltype(::cuLaunchKernel)* launch_ = DRIVER_ENTRY(cuLaunchKernel);
};

}  // namespace

void stream_pair() {
  const Gpu gpu;
  pair_on(gpu, gpu.stream);
}

void null_stream_pair() { pair_on(Gpu(), nullptr); }

void per_thread_pair() { pair_on(Gpu(), CU_STREAM_PER_THREAD); }

void synchronous_pair() {
  const Gpu gpu;
  print_ns(best_ns(1000, [&] { gpu.pair(kBytes); }));
}

// The clock is read at each pair, because the launches between them must not count.
void busy_pair() {
  const Gpu gpu;
  Busy busy(gpu.stream);
  const double clock_ns = best_ns(1000, [] { (void)ns_since(Clock::now()); });
  Rounds rounds;
  while (rounds.more()) {
    double sum = 0;
    constexpr int kCount = 200;
    for (int i = 0; i < kCount; ++i) {
      busy.keep_in_flight();
      const auto begin = Clock::now();
      gpu.pair(kBytes);
      sum += ns_since(begin) - clock_ns / 2;
    }
    rounds.add(sum / kCount);
  }
  print_ns(rounds.best());
}

void launch() {
  const Gpu gpu;
  Busy busy(gpu.stream, 1);
  print_ns(best_ns(1000, [&] { busy.launch(); }));
}

void pointer_questions() {
  const Gpu gpu;
  const auto one = DRIVER_ENTRY(cuPointerGetAttribute);
  const auto several = DRIVER_ENTRY(cuPointerGetAttributes);
  const auto heap = std::make_unique<char[]>(kMiB);
  const auto pointer = reinterpret_cast<CUdeviceptr>(heap.get()) + 4096;
  unsigned answers[2] = {};
  const double one_ns = best_ns(1000, [&] { one(&answers[0], CU_POINTER_ATTRIBUTE_MEMORY_TYPE, pointer); });
  CUpointer_attribute attributes[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED};
  void* into[] = {&answers[0], &answers[1]};
  const double several_ns = best_ns(1000, [&] { several(2, attributes, into, pointer); });
  std::printf("{\"one\": %.2f, \"several\": %.2f}\n", one_ns, several_ns);
}

}  // namespace speed
