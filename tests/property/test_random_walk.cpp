// Random calls against a model that remembers every free: whatever order calls come in, no block is
// handed out that earlier work may still touch, and no invariant breaks.
//
// A failure prints its seed; TIDEPOOL_SEED repeats it alone, TIDEPOOL_WALKS asks for more walks.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "policies/catalogue.hpp"
#include "tests/unit/policies/checked_backing.hpp"

using namespace tidepool;
using tidepool::testing::CheckedBacking;

namespace {

constexpr Bytes kDevice = 512 * kMiB;
constexpr int kSteps = 3000;
constexpr int kStepsPerAudit = 50;

std::uint64_t from_environment(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

class Walk {
 public:
  Walk(const std::string& name, std::uint64_t seed)
      : random_(seed), backing_(kDevice), policy_(make_policy(name, {kDevice, kDevice / 4}, backing_)) {}

  // Nothing if all held, else what broke.
  std::string run() {
    for (int step = 0; step < kSteps && fault_.empty(); ++step) {
      act();
      if (step % kStepsPerAudit == 0) audit();
    }
    for (const auto& [address, size] : live_) {
      if (!policy_->free(address, kNoStream)) fault_ = "a live block could not be freed at the end";
      sum_ -= size;
    }
    policy_->close_fence(policy_->open_fence());
    audit();
    backing_.refuse_call = -1;
    policy_->trim(0);
    if (fault_.empty() && backing_.held() != 0) fault_ = "memory was held with nothing live";
    return fault_;
  }

 private:
  // Memory once freed: until it is fenced, only work of `stream` may have it.
  struct Freed {
    Bytes size;
    StreamKey stream;
    int at;  // the model's own clock
  };

  int below(int end) { return static_cast<int>(random_() % static_cast<unsigned>(end)); }
  StreamKey any_stream() { return StreamKey{static_cast<std::uint64_t>(below(4))}; }  // 0: none

  Bytes any_size() {
    static const Bytes repeated[] = {512, 4096, 65536, kMiB, 3 * kMiB, 16 * kMiB, 24 * kMiB};
    switch (below(4)) {
      case 0: return 1 + random_() % (8 * kKiB);
      case 1: return 1 + random_() % (4 * kMiB);
      case 2: return 1 + random_() % (below(8) == 0 ? 128 * kMiB : 20 * kMiB);
      default: return repeated[below(7)];
    }
  }

  void act() {
    const int dice = below(1000);
    if (dice < 480) return allocate();
    if (dice < 950) return free();
    if (dice < 965) return open_fence();
    if (dice < 980) return close_fence();
    if (dice < 985) return forget();
    if (dice < 990) policy_->trim(random_() % kDevice);
    if (dice < 995) backing_.refuse_call = below(3);
  }

  void allocate() {
    const Request request{any_size(), any_stream(), below(4) != 0};
    const auto block = policy_->allocate(request);
    if (!block) {
      if (block.failure().reason == Reason::needs_fence && !request.fence_possible)
        fault_ = "needs_fence although no fence is possible";
      if (block.failure().reason == Reason::needs_fence && below(2) == 0) {
        open_fence();
        close_fence();
      }
      return;
    }
    const auto [begin, size, label] = block.value();
    if (size < request.size) fault_ = "a block is shorter than its request";
    if (!backing_.usable({begin, size})) fault_ = "a block lies on released memory";
    const auto next = live_.lower_bound(begin);
    if (next != live_.end() && next->first < begin + size) fault_ = "a block overlaps a live one above";
    if (next != live_.begin() && std::prev(next)->first + std::prev(next)->second > begin)
      fault_ = "a block overlaps a live one below";
    claim(begin, size, request.stream);
    live_[begin] = size;
    sum_ += size;
  }

  // The fence rule: an earlier owner of any byte has passed a fence or was on the same stream.
  void claim(Address begin, Bytes size, StreamKey stream) {
    auto old = freed_.lower_bound(begin);
    while (old != freed_.begin() && std::prev(old)->first + std::prev(old)->second.size > begin) --old;
    while (old != freed_.end() && old->first < begin + size) {
      const auto [from, was] = *old;
      if (was.at > fenced_ && (was.stream == kNoStream || was.stream != stream))
        fault_ = "a block was handed out that waits for a fence";
      old = freed_.erase(old);
      // What sticks out on either side keeps its history.
      if (from < begin) freed_[from] = {begin - from, was.stream, was.at};
      if (from + was.size > begin + size)
        old = freed_.insert({begin + size, {from + was.size - (begin + size), was.stream, was.at}}).first;
    }
  }

  void free() {
    if (live_.empty()) return;
    auto block =
        live_.lower_bound(Address{std::prev(live_.end())->first.value -
                                  random_() % (std::prev(live_.end())->first - live_.begin()->first + 1)});
    const auto [begin, size] = *block;
    const StreamKey stream = any_stream();
    const auto found = policy_->find(begin + random_() % size);
    if (!found || found->address != begin || found->size != size) fault_ = "find does not know a live block";
    const auto freed = policy_->free(begin, stream);
    if (!freed || freed.value().size != size) fault_ = "a live block could not be freed";
    if (policy_->free(begin, stream)) fault_ = "a block could be freed twice";
    live_.erase(block);
    sum_ -= size;
    freed_[begin] = {size, stream, ++clock_};
  }

  void open_fence() { open_.push_back({policy_->open_fence(), clock_}); }

  void close_fence() {
    if (open_.empty()) return;
    const auto fence = open_.begin() + below(static_cast<int>(open_.size()));
    policy_->close_fence(fence->first);
    fenced_ = std::max(fenced_, fence->second);
    open_.erase(fence);
  }

  void forget() {
    const StreamKey stream = any_stream();
    policy_->forget_stream(stream);
    for (auto& [begin, was] : freed_)
      if (was.stream == stream) was.stream = kNoStream;
  }

  void audit() {
    if (auto fault = policy_->audit()) fault_ = *fault;
    const Snapshot now = policy_->snapshot();
    if (now.live != sum_) fault_ = "live is not what the model says";
    if (now.reserved != backing_.held()) fault_ = "reserved is not what the backing holds";
  }

  std::mt19937_64 random_;
  CheckedBacking backing_;
  std::unique_ptr<Policy> policy_;
  std::map<Address, Bytes> live_;
  std::map<Address, Freed> freed_;
  std::vector<std::pair<Fence, int>> open_;
  Bytes sum_ = 0;
  int clock_ = 0;
  int fenced_ = 0;  // frees up to this one are fenced
  std::string fault_;
};

}  // namespace

TEST_CASE("no order of calls breaks a rule") {
  const std::string name = GENERATE(as<std::string>{}, "ondemand", "prealloc");
  const std::uint64_t first = from_environment("TIDEPOOL_SEED", 1);
  const std::uint64_t walks = std::getenv("TIDEPOOL_SEED") ? 1 : from_environment("TIDEPOOL_WALKS", 60);
  for (std::uint64_t seed = first; seed < first + walks; ++seed) {
    INFO("repeat with TIDEPOOL_SEED=" << seed << ", policy " << name);
    std::string fault;
    try {
      fault = Walk(name, seed).run();
    } catch (const testing::BrokenRule& rule) {
      fault = rule.what();
    }
    INFO(fault);
    REQUIRE(fault.empty());
  }
}
