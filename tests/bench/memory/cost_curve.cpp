// A crowd of blocks of which one after another is replaced by one of another size.
#include "tests/bench/memory/cost_curve.hpp"

#include <malloc.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <random>
#include <stdexcept>

#include "policies/catalogue.hpp"
#include "tests/bench/memory/counting_backing.hpp"

namespace tidepool::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kCrowds[] = {1'000, 10'000, 100'000, 1'000'000};
constexpr Bytes kHuge = 4096 * kGiB;
constexpr std::size_t kBatch = 1000;
constexpr std::size_t kLeastReplaced = 200'000;
// Slower engines end here, and the table shows on how many operations their figure rests.
constexpr std::chrono::seconds kPatience{20};

constexpr double kMostGrowth = 3;
constexpr double kMostHostBytes = 100;

struct Replacement {
  std::size_t place;
  Bytes size;
};

double given_out() {
  const struct mallinfo2 info = mallinfo2();
  return static_cast<double>(info.uordblks + info.hblkhd);
}

double resident() {
  double all = 0;
  double here = 0;
  std::ifstream("/proc/self/statm") >> all >> here;
  return here * static_cast<double>(sysconf(_SC_PAGESIZE));
}

class Crowd {
 public:
  Crowd(const std::string& name, std::size_t live)
      : backing_(kHuge),
        policy_(make_policy(name, {kHuge, kShare}, backing_)),
        blocks_(live),
        batch_(kBatch) {
    for (Address& block : blocks_) block = {1};  // resident before anything is measured
  }

  void fill() {
    for (Address& block : blocks_) block = allocate(any_size());
  }

  // Draws ahead, untimed, and returns the time of kBatch replacements.
  Clock::duration replace_batch() {
    for (Replacement& one : batch_) one = {random_() % blocks_.size(), any_size()};
    const auto begin = Clock::now();
    for (std::size_t at = 0; at < kBatch; ++at) {
      // The table is this program's, not the engine's: its cache misses are not to be counted.
      __builtin_prefetch(&blocks_[batch_[std::min(at + 16, kBatch - 1)].place]);
      Address& block = blocks_[batch_[at].place];
      if (!policy_->free(block, kStream)) throw std::runtime_error("a live block cannot be freed");
      block = allocate(batch_[at].size);
    }
    return Clock::now() - begin;
  }

 private:
  static constexpr StreamKey kStream{1};

  Bytes any_size() {
    constexpr double kDoublings = 14;  // 512 B to 8 MiB
    const double at = static_cast<double>(random_() >> 11) * 0x1p-53 * kDoublings;
    return static_cast<Bytes>(512 * std::exp2(at));
  }

  Address allocate(Bytes size) {
    auto block = policy_->allocate({size, kStream});
    while (!block && block.failure().reason == Reason::needs_fence) {
      policy_->close_fence(policy_->open_fence());
      block = policy_->allocate({size, kStream});
    }
    if (!block) throw std::runtime_error("the huge device is full");
    return block.value().address;
  }

  std::mt19937_64 random_{1};
  CountingBacking backing_;
  std::unique_ptr<Policy> policy_;
  std::vector<Address> blocks_;
  std::vector<Replacement> batch_;
};

CostPoint measure_crowd(const std::string& policy, std::size_t live) {
  CostPoint point;
  point.live = live;
  Crowd crowd(policy, live);
  const double given_before = given_out();
  const double resident_before = resident();
  crowd.fill();
  // Steady once every block has been replaced about once; half of the patience is for that.
  const auto began = Clock::now();
  for (std::size_t done = 0; done < live && Clock::now() - began < kPatience / 2; done += kBatch)
    crowd.replace_batch();
  Clock::duration timed{};
  std::size_t replaced = 0;
  while (replaced < kLeastReplaced && Clock::now() - began < kPatience) {
    timed += crowd.replace_batch();
    replaced += kBatch;
  }
  point.operations = 2 * replaced;
  point.nanoseconds =
      std::chrono::duration<double, std::nano>(timed).count() / static_cast<double>(point.operations);
  const auto blocks = static_cast<double>(live);
  point.host_bytes = (given_out() - given_before) / blocks;
  point.host_resident = (resident() - resident_before) / blocks;
  return point;
}

CostPoint measure_in_child(const std::string& policy, std::size_t live) {
  int ends[2];
  if (pipe(ends) != 0) throw std::runtime_error("no pipe");
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("cannot fork");
  if (child == 0) {
    int code = 1;
    try {
      const CostPoint point = measure_crowd(policy, live);
      code = write(ends[1], &point, sizeof point) == sizeof point ? 0 : 1;
    } catch (const std::exception& error) {
      std::fprintf(stderr, "%s with %zu blocks: %s\n", policy.c_str(), live, error.what());
    }
    _exit(code);
  }
  close(ends[1]);
  CostPoint point;
  const bool whole = read(ends[0], &point, sizeof point) == sizeof point;
  close(ends[0]);
  waitpid(child, nullptr, 0);
  if (!whole) throw std::runtime_error("a crowd could not be measured");
  return point;
}

}  // namespace

std::vector<CostPoint> cost_curve(const std::string& policy) {
  std::vector<CostPoint> curve;
  for (const std::size_t live : kCrowds) curve.push_back(measure_in_child(policy, live));
  return curve;
}

std::vector<Check> checks_of(const std::vector<CostPoint>& curve) {
  const CostPoint& last = curve.back();
  return {{"growth", last.nanoseconds / curve.front().nanoseconds, kMostGrowth},
          {"host bytes a block", std::max(last.host_bytes, last.host_resident), kMostHostBytes}};
}

}  // namespace tidepool::bench
