// Two threads, each on a core of its own.
#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <barrier>
#include <fstream>
#include <thread>

#include "driver.hpp"
#include "scenes.hpp"
#include "timing.hpp"

namespace speed {
namespace {

constexpr std::size_t kBytes = 64 * kKiB;

void stay_on(int core) {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  CPU_SET(core, &cores);
  if (sched_setaffinity(0, sizeof cores, &cores) != 0) give_up("sched_setaffinity", core);
}

// Operations in a nanosecond when 1 or 2 threads do `body` at once; `body` gets the thread's number.
template <typename Body>
double rate(int threads, int count, const Body& body) {
  std::barrier together(threads);
  Clock::time_point begins[2];
  Clock::time_point ends[2];
  const auto work = [&](int number) {
    stay_on(number);
    body(number, count / 10);
    together.arrive_and_wait();
    begins[number] = Clock::now();
    body(number, count);
    ends[number] = Clock::now();
  };
  std::thread other;
  if (threads == 2) other = std::thread(work, 1);
  work(0);
  if (threads == 1) return count / std::chrono::duration<double, std::nano>(ends[0] - begins[0]).count();
  other.join();
  const auto took = std::max(ends[0], ends[1]) - std::min(begins[0], begins[1]);
  return 2 * count / std::chrono::duration<double, std::nano>(took).count();
}

struct Gain {
  double one = 0;
  double two = 0;
  template <typename Body>
  void measure(int count, const Body& body) {
    one = std::max(one, rate(1, count, body));
    two = std::max(two, rate(2, count, body));
  }
  double of_two() const { return two / one; }
};

// A chain of multiplications: it needs a core and nothing else.
void bare_loop(int, int count) {
  unsigned long long state = 1;
  for (int i = 0; i < 30 * count; ++i) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    __asm__ volatile("" : "+r"(state));
  }
}

void two_threads(CUstream first, CUstream second, const Gpu& gpu) {
  const CUstream streams[] = {first, second};
  const auto pairs = [&](int number, int count) {
    EXPECT(gpu.set_current(gpu.context));
    for (int i = 0; i < count; ++i) gpu.pair_async(kBytes, streams[number]);
  };
  Gain bare;
  Gain ours;
  Rounds rounds;
  while (rounds.more()) {
    bare.measure(5000, bare_loop);
    ours.measure(5000, pairs);
    rounds.add(0);
  }
  std::printf("{\"gain\": %.3f, \"bare gain\": %.3f, \"of bare\": %.3f, \"ns\": %.2f}\n", ours.of_two(),
              bare.of_two(), ours.of_two() / bare.of_two(), 1 / ours.one);
}

// One thread writes, one reads. The counters are published in batches, so that the queue costs a pair
// next to nothing.
class Queue {
 public:
  void push(CUdeviceptr block) {
    for (int spins = 0; written_ - read_.load(std::memory_order_acquire) == kRoom; ++spins) wait(spins);
    slots_[written_++ % kRoom] = block;
    if (written_ % kBatch == 0) published_.store(written_, std::memory_order_release);
  }
  CUdeviceptr pop() {
    for (int spins = 0; seen_ == taken_; ++spins) {
      seen_ = published_.load(std::memory_order_acquire);
      if (seen_ == taken_) wait(spins);
    }
    const CUdeviceptr block = slots_[taken_++ % kRoom];
    if (taken_ % kBatch == 0) read_.store(taken_, std::memory_order_release);
    return block;
  }

 private:
  // The other thread is nearly there, unless its core was taken from it.
  static void wait(int spins) {
    if (spins > 10'000) sched_yield();
  }

  static constexpr std::size_t kRoom = 256;
  static constexpr std::size_t kBatch = 32;

  CUdeviceptr slots_[kRoom] = {};
  alignas(64) std::size_t written_ = 0;
  alignas(64) std::atomic<std::size_t> published_{0};
  alignas(64) std::size_t taken_ = 0;
  std::size_t seen_ = 0;
  alignas(64) std::atomic<std::size_t> read_{0};
};

double resident_kib() {
  std::ifstream file("/proc/self/statm");
  double size = 0;
  double resident = 0;
  file >> size >> resident;
  return resident * static_cast<double>(sysconf(_SC_PAGESIZE)) / 1024;
}

void hand_over(int rounds_wanted) {
  const Gpu gpu;
  // Whole batches of the queue, many times what it holds, and short enough to be left alone by other
  // programs.
  constexpr int kCount = 32 * 60;
  Queue queue;
  std::thread receiver([&] {
    stay_on(1);
    EXPECT(gpu.set_current(gpu.context));
    for (int i = 0; i < kCount * rounds_wanted; ++i) EXPECT(gpu.free_async(queue.pop(), gpu.stream));
  });
  stay_on(0);
  double best = 1e12;
  double resident_at_half = 0;
  for (int round = 0; round < rounds_wanted; ++round) {
    if (round == rounds_wanted / 2) resident_at_half = resident_kib();
    const auto begin = Clock::now();
    for (int i = 0; i < kCount; ++i) {
      CUdeviceptr block = 0;
      EXPECT(gpu.allocate_async(&block, kBytes, gpu.stream));
      queue.push(block);
    }
    best = std::min(best, ns_since(begin) / kCount);
  }
  receiver.join();
  const double grown = resident_kib() - resident_at_half;
  const double pair = best_ns(1000, [&] { gpu.pair_async(kBytes, gpu.stream); });
  std::printf("{\"ns\": %.2f, \"pair\": %.2f, \"of pair\": %.3f, \"host KiB grown\": %.0f}\n", best, pair,
              best / pair, grown);
}

}  // namespace

void threads_apart() {
  const Gpu gpu;
  two_threads(gpu.stream, Gpu::new_stream(), gpu);
}

void threads_together() {
  const Gpu gpu;
  two_threads(gpu.stream, gpu.stream, gpu);
}

void handover() { hand_over(100); }
void handover_long() { hand_over(400); }

}  // namespace speed
