// A random mix of allocations and frees over a number of live blocks, the same for every allocator that
// is measured with it: a seed, no library's distribution, and all choices made before the clock starts.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "driver.hpp"
#include "timing.hpp"

namespace speed {

class Mix {
 public:
  // Sizes are spread evenly over the powers of two between the bounds, and any number of bytes.
  Mix(std::size_t live, std::size_t smallest, std::size_t largest) : blocks_(live), steps_(kSteps) {
    const double range = std::log2(static_cast<double>(largest) / static_cast<double>(smallest));
    const auto size = [&] {
      return static_cast<std::size_t>(static_cast<double>(smallest) * std::exp2(range * fraction()));
    };
    for (Step& step : steps_)
      step = {static_cast<std::size_t>(fraction() * static_cast<double>(live)), size()};
    for (std::size_t i = 0; i < live; ++i) first_sizes_.push_back(size());
  }

  // Nanoseconds an operation: each step frees one block and allocates another in its place.
  template <typename Allocate, typename Free>
  double operation_ns(const Allocate& allocate, const Free& free) {
    for (std::size_t i = 0; i < blocks_.size(); ++i) blocks_[i] = allocate(first_sizes_[i]);
    std::size_t at = 0;
    const auto round = [&](std::size_t count) {
      const auto begin = Clock::now();
      for (std::size_t i = 0; i < count; ++i) {
        const Step& step = steps_[at++ % kSteps];
        // Our own table's cache misses are no allocator's fault.
        __builtin_prefetch(&blocks_[steps_[(at + 16) % kSteps].block]);
        free(blocks_[step.block]);
        blocks_[step.block] = allocate(step.size);
      }
      return ns_since(begin) / static_cast<double>(2 * count);
    };
    // Warm when each block has been replaced a few times, but of a million not all are.
    const auto warm_by = Clock::now() + std::chrono::milliseconds(400);
    for (std::size_t done = 0; done < 4 * blocks_.size() && Clock::now() < warm_by; done += 1000) round(1000);
    Rounds rounds;
    while (rounds.more()) rounds.add(round(1000));
    return rounds.best();
  }

  const std::vector<CUdeviceptr>& blocks() const { return blocks_; }

 private:
  struct Step {
    std::size_t block;
    std::size_t size;
  };
  static constexpr std::size_t kSteps = std::size_t{1} << 18;

  double fraction() {  // xorshift64*
    state_ ^= state_ >> 12;
    state_ ^= state_ << 25;
    state_ ^= state_ >> 27;
    return static_cast<double>((state_ * 2685821657736338717ull) >> 11) * 0x1p-53;
  }

  std::uint64_t state_ = 20230817;
  std::vector<CUdeviceptr> blocks_;
  std::vector<Step> steps_;
  std::vector<std::size_t> first_sizes_;
};

// PyTorch's 570 to 750 ns were measured of this one.
inline Mix usual_mix() { return {4000, 512, 8 * kMiB}; }

}  // namespace speed
