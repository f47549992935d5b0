// Recorded programs, replayed: how much memory a policy holds for them, how often it stalls the device
// for a fence, and whether a repeated step gets the same addresses again. Prints its figures.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdio>
#include <string>

#include "policies/catalogue.hpp"
#include "tests/property/replay.hpp"

using namespace tidepool;
using namespace tidepool::testing;

namespace {

constexpr Bytes kDevice = 80 * kGiB;

double mib(Bytes bytes) { return static_cast<double>(bytes) / static_cast<double>(kMiB); }

// What may be held for `asked`: 3 % more; of little memory 32 MiB more.
Bytes allowed(Bytes asked) {
  const Bytes share = round_up(asked / 100 * 103, kPage);
  return asked < kGiB ? std::max(share, asked + 32 * kMiB) : share;
}

// Per 1,000 events. A fence costs nothing while the device is idle, but it stalls one that works; a map
// operation costs tens of microseconds wherever it comes.
constexpr double kMostFences = 2;
constexpr double kMostLateOperations = 1;

double per_thousand(int count, std::size_t events) { return count * 1000.0 / static_cast<double>(events); }

Replayed play(const std::string& what, const std::vector<Event>& events, const std::string& name,
              Bytes share) {
  CheckedBacking backing(kDevice);
  const auto policy = make_policy(name, {kDevice, share}, backing);
  const Replayed result = replay(events, *policy, backing);
  CHECK_FALSE(policy->audit());
  std::printf(
      "%-36s asked %8.1f MiB  held %8.1f MiB (%.3f)  fences %3d (%.2f)  map operations %5d, late %4d "
      "(%.2f)\n",
      what.c_str(), mib(result.asked_peak), mib(result.reserved_peak),
      static_cast<double>(result.reserved_peak) / static_cast<double>(result.asked_peak), result.fences,
      per_thousand(result.fences, events.size()), result.operations, result.late_operations,
      per_thousand(result.late_operations, events.size() / 2));
  return result;
}

const char* const kTraces[] = {"jax_gpt_async.csv", "tf_mlp_async.csv", "somas_resnet50.csv",
                               "somas_bert_base.csv"};

}  // namespace

TEST_CASE(
    "on demand holds at most 3 % more than a recorded program asks for, with few fences and map operations") {
  for (const char* name : kTraces) {
    const auto events = read_trace(name);
    const Replayed result = play(name, events, "ondemand", 0);
    CHECK(result.reserved_peak <= allowed(result.asked_peak));
    CHECK(per_thousand(result.fences, events.size()) <= kMostFences);
    CHECK(per_thousand(result.late_operations, events.size() / 2) <= kMostLateOperations);
  }
}

TEST_CASE(
    "a share that is large enough is all that preallocated takes, without a fence or a late operation") {
  for (const char* name : kTraces) {
    const auto events = read_trace(name);
    const Replayed result = play(std::string(name) + ", 20 GiB at once", events, "prealloc", 20 * kGiB);
    CHECK(result.reserved_peak <= 20 * kGiB + kPage);  // what is asked for before the first MiB
    CHECK(result.fences == 0);
    CHECK(result.late_operations == 0);
  }
}

TEST_CASE("a share that is too small is no border: preallocated goes on as on demand does") {
  for (const char* name : kTraces) {
    const auto events = read_trace(name);
    const Replayed result = play(std::string(name) + ", 256 MiB at once", events, "prealloc", 256 * kMiB);
    CHECK(result.reserved_peak <= std::max(allowed(result.asked_peak), 256 * kMiB + kPage));
    CHECK(per_thousand(result.fences, events.size()) <= kMostFences);
    CHECK(per_thousand(result.late_operations, events.size() / 2) <= kMostLateOperations);
  }
}

// Each block on one of four streams, the worst case for reuse: what one stream frees is what another
// asks for next.
TEST_CASE("four streams that share a program's memory stay within 3 % too, and fences are counted") {
  for (const char* name : {"jax_gpt_async.csv", "somas_resnet50.csv", "somas_bert_base.csv"}) {
    auto events = read_trace(name);
    for (Event& event : events) event.stream = StreamKey{1 + event.id % 4};
    const Replayed result = play(std::string(name) + ", four streams", events, "ondemand", 0);
    CHECK(result.reserved_peak <= allowed(result.asked_peak));
    CHECK(static_cast<std::size_t>(result.fences) < events.size() / 50);
  }
}

// The recorded JAX training donates nothing: each step makes new parameters while the old ones live,
// and frees the older ones in an order of its own. So two sets of addresses must alternate, and a step
// can at best repeat the one of two steps before.
namespace {

constexpr std::size_t kSteps = 316;    // the first event of the first step
constexpr std::size_t kStep = 162;     // events of each
constexpr std::size_t kSteady = 1126;  // a step that the next one repeats event by event

// The trace up to a steady step, then that step `times` times. A free names its block by age.
std::vector<Event> with_repeated_step(int times) {
  std::vector<Event> events = read_trace("jax_gpt_async.csv");
  std::vector<std::size_t> born(events.size());  // event of each block, by id
  for (std::size_t at = 0; at < events.size(); ++at) {
    if (events[at].allocates) born[events[at].id] = at;
    events[at].id = born[events[at].id];
  }
  events.resize(kSteady + kStep);
  for (std::size_t at = events.size(); at < kSteady + kStep * static_cast<std::size_t>(times); ++at) {
    Event event = events[at - kStep];
    event.id += kStep;
    events.push_back(event);
  }
  return events;
}

// Of the blocks of events [from, to): how many lie elsewhere than the one of two steps before?
int moved(const std::vector<Event>& events, const Replayed& result, std::size_t from, std::size_t to) {
  std::vector<Address> at(events.size());
  std::size_t next = 0;
  for (std::size_t event = 0; event < events.size(); ++event)
    if (events[event].allocates) at[event] = result.addresses[next++];
  int count = 0;
  for (std::size_t event = from; event < to; ++event) count += at[event] != at[event - 2 * kStep];
  return count;
}

}  // namespace

TEST_CASE("a training step that repeats gets the same addresses from its third repetition on") {
  const std::string name = GENERATE(as<std::string>{}, "ondemand", "prealloc");
  constexpr std::size_t kTimes = 20;
  CheckedBacking backing(kDevice);
  const auto policy = make_policy(name, {kDevice, 4 * kGiB}, backing);
  const auto events = with_repeated_step(kTimes);
  const Replayed result = replay(events, *policy, backing);
  for (std::size_t time = 2; time < kTimes; ++time) {
    INFO(name << ", repetition " << time + 1);
    CHECK(moved(events, result, kSteady + time * kStep, kSteady + (time + 1) * kStep) == 0);
  }
}

TEST_CASE("with batches of changing size a tenth of the blocks moves at most") {
  CheckedBacking backing(kDevice);
  const auto policy = make_policy("ondemand", {kDevice, 0}, backing);
  const auto events = read_trace("jax_gpt_async.csv");
  const Replayed result = replay(events, *policy, backing);
  const std::size_t from = kSteps + 4 * kStep;
  const std::size_t to = kSteps + 23 * kStep;
  const int count = moved(events, result, from, to);
  const auto blocks =
      std::count_if(events.begin() + from, events.begin() + to, [](const Event& e) { return e.allocates; });
  std::printf("jax_gpt_async.csv: %d of %td blocks moved\n", count, blocks);
  CHECK(count <= blocks / 10);
}
