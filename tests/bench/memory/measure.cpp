// One pass counts, several others take the time: looking at the books must not be timed.
#include "tests/bench/memory/measure.hpp"

#include <algorithm>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <unordered_map>

#include "policies/catalogue.hpp"
#include "tests/bench/memory/counting_backing.hpp"

namespace tidepool::bench {
namespace {

using testing::Event;

constexpr std::size_t kMostSamples = 2000;
constexpr int kTimedPasses = 7;

// Event::id of the result is a place in a table, so that a pass looks nothing up.
std::vector<Event> with_places(std::vector<Event> events, std::size_t& places) {
  std::unordered_map<std::uint64_t, std::uint64_t> place_of;
  places = 0;
  for (Event& event : events) {
    if (event.allocates) place_of[event.id] = places++;
    event.id = place_of.at(event.id);
  }
  return events;
}

class Player {
 public:
  Player(const std::string& policy, std::size_t places)
      : backing(kDevice), policy_(make_policy(policy, {kDevice, kShare}, backing)), blocks_(places) {}

  void play(const Event& event) {
    if (event.allocates) return allocate(event);
    Block& block = blocks_[event.id];
    if (!policy_->free(block.address, event.stream)) throw std::runtime_error("a live block cannot be freed");
    rounded -= block.size;
    block = {};
  }

  void free_the_rest() {
    for (Block& block : blocks_) {
      if (block.size == 0) continue;
      if (!policy_->free(block.address, kNoStream)) throw std::runtime_error("a live block cannot be freed");
      block = {};
    }
    policy_->close_fence(policy_->open_fence());
    policy_->trim(0);
  }

  CountingBacking backing;
  Bytes rounded = 0;  // live, as the policy gave it
  int fences = 0;

 private:
  void allocate(const Event& event) {
    auto block = policy_->allocate({event.size, event.stream});
    while (!block && block.failure().reason == Reason::needs_fence) {
      ++fences;
      policy_->close_fence(policy_->open_fence());
      block = policy_->allocate({event.size, event.stream});
    }
    if (!block) throw std::runtime_error("an allocation of the trace failed");
    blocks_[event.id] = block.value();
    rounded += block.value().size;
  }

  std::unique_ptr<Policy> policy_;
  std::vector<Block> blocks_;
};

void count(Player& player, const std::vector<Event>& events, Measured& result) {
  const std::size_t per_sample = events.size() / kMostSamples + 1;
  std::uint64_t operations_before_half = 0;
  Bytes live = 0;
  Sample sample;
  for (std::size_t at = 0; at < events.size(); ++at) {
    const Event& event = events[at];
    if (at == events.size() / 2) operations_before_half = player.backing.operations();
    player.play(event);
    live += event.allocates ? event.size : Bytes{0} - event.size;
    if (live > result.asked_peak) {
      result.asked_peak = live;
      result.rounding = player.rounded - live;
    }
    sample.live = std::max(sample.live, live);
    sample.held = std::max(sample.held, player.backing.held());
    if ((at + 1) % per_sample == 0 || at + 1 == events.size()) {
      sample.event = at;
      result.samples.push_back(sample);
      sample = {};
    }
  }
  const auto in_second_half = static_cast<double>(player.backing.operations() - operations_before_half);
  result.operations = in_second_half * 1000 / static_cast<double>(events.size() - events.size() / 2);
  result.held_peak = player.backing.held_peak();
  result.fences = player.fences;
  player.free_the_rest();
  result.held_at_end = player.backing.held();
}

double nanoseconds_of_pass(const std::string& policy, const std::vector<Event>& events, std::size_t places) {
  Player player(policy, places);
  const auto begin = std::chrono::steady_clock::now();
  for (const Event& event : events) player.play(event);
  const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
  return took.count() / static_cast<double>(events.size());
}

}  // namespace

Measured measure(const std::string& policy, const std::vector<Event>& recorded) {
  std::size_t places = 0;
  const std::vector<Event> events = with_places(recorded, places);
  Measured result;
  Player player(policy, places);
  count(player, events, result);

  std::vector<double> passes;
  for (int pass = 0; pass < kTimedPasses; ++pass)
    passes.push_back(nanoseconds_of_pass(policy, events, places));
  std::sort(passes.begin(), passes.end());
  result.nanoseconds = passes[passes.size() / 2];
  return result;
}

}  // namespace tidepool::bench
