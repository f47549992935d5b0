// What every policy promises to several threads at once: blocks of one's own, freed once, with their
// labels, whatever the others do; and right books at the end. Runs under ThreadSanitizer.
#include <atomic>
#include <map>
#include <mutex>
#include <random>
#include <thread>

#include "tests/conformance/each_policy.hpp"

using namespace tidepool;
using namespace tidepool::testing;

namespace {

constexpr unsigned kThreads = 4;

// Who has which bytes, as the program sees it. A block is entered after it was given and struck out before
// it is freed, so that two entries never overlap unless the policy gave memory twice.
class Deeds {
 public:
  void enter(const Block& block) {
    const std::lock_guard hold(lock_);
    const auto next = blocks_.lower_bound(block.address);
    if (next != blocks_.end() && next->first < block.address + block.size) ++faults;
    if (next != blocks_.begin() && std::prev(next)->first + std::prev(next)->second > block.address) ++faults;
    if (!numbers_.emplace(block.label.number, true).second) ++faults;
    blocks_[block.address] = block.size;
  }
  void strike(const Block& block) {
    const std::lock_guard hold(lock_);
    blocks_.erase(block.address);
  }
  std::atomic<int> faults{0};

 private:
  std::mutex lock_;
  std::map<Address, Bytes> blocks_;
  std::map<std::uint64_t, bool> numbers_;
};

// Blocks on their way from the thread that made them to one that frees them.
class Exchange {
 public:
  void give(const Block& block) {
    const std::lock_guard hold(lock_);
    blocks_.push_back(block);
  }
  std::optional<Block> take(std::uint64_t any) {
    const std::lock_guard hold(lock_);
    if (blocks_.empty()) return std::nullopt;
    std::swap(blocks_[any % blocks_.size()], blocks_.back());
    const Block block = blocks_.back();
    blocks_.pop_back();
    return block;
  }

 private:
  std::mutex lock_;
  std::vector<Block> blocks_;
};

bool same(const Block& a, const Block& b) {
  return a.address == b.address && a.size == b.size && a.label.requested == b.label.requested &&
         a.label.owner == b.label.owner && a.label.number == b.label.number && a.label.tag == b.label.tag;
}

// Lets all threads start together and counts what any of them threw as a fault.
template <typename Act>
void in_threads(std::atomic<int>& faults, Act act) {
  std::atomic<unsigned> ready{0};
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < kThreads; ++i)
    threads.emplace_back([&, i] {
      ++ready;
      while (ready < kThreads) std::this_thread::yield();
      try {
        act(i);
      } catch (...) {
        ++faults;
      }
    });
  for (std::thread& thread : threads) thread.join();
}

struct Walker {
  Policy& policy;
  Deeds& deeds;
  Exchange& exchange;
  std::uint64_t thread;
  std::mt19937_64 random{thread};

  std::uint64_t below(std::uint64_t end) { return random() % end; }
  // Mostly one's own; each thread has two, and all share the stream of none.
  StreamKey any_stream() {
    if (below(6) == 0) return StreamKey{below(2 * kThreads + 1)};
    return StreamKey{1 + 2 * thread + below(2)};
  }

  void allocate() {
    static constexpr Bytes kSizes[] = {512, 4096, 65536, kMiB, 3 * kMiB, 17 * kMiB};
    const Bytes size = below(3) == 0 ? 1 + below(2 * kMiB) : kSizes[below(6)];
    const Request request{size, any_stream(), below(2) == 0, thread, static_cast<std::uint32_t>(size)};
    const auto block = policy.allocate(request);
    if (!block) {
      const Reason reason = block.failure().reason;
      if (reason == Reason::needs_fence && request.fence_possible) {
        policy.close_fence(policy.open_fence());
        return;
      }
      // invalid: the stream died while its memory was looked for.
      if (reason != Reason::out_of_memory && reason != Reason::invalid) ++deeds.faults;
      return;
    }
    const Block& given = block.value();
    const auto& label = given.label;
    if (label.requested != size || label.owner != thread || label.tag != request.tag) ++deeds.faults;
    deeds.enter(given);
    exchange.give(given);
  }

  void free() {
    const auto block = exchange.take(random());
    if (!block) return;
    const auto found = policy.find(block->address + (below(2) == 0 ? 0 : block->size - 1));
    if (!found || !same(*found, *block)) ++deeds.faults;
    deeds.strike(*block);
    const auto freed =
        below(8) == 0 ? policy.free_idle(block->address) : policy.free(block->address, any_stream());
    if (!freed || !same(freed.value(), *block)) ++deeds.faults;
  }

  void step() {
    const std::uint64_t dice = below(1000);
    if (dice < 480) return allocate();
    if (dice < 960) return free();
    if (dice < 970) return policy.close_fence(policy.open_fence());
    if (dice < 975) return policy.forget_stream(any_stream());
    if (dice < 980) return static_cast<void>(policy.trim(below(kDevice)));
    if (dice < 985) return static_cast<void>(policy.snapshot());
    if (dice < 990) {
      Bytes live = 0;
      policy.each_live([&](const Block& block) { live += block.size; });
      if (live > kDevice) ++deeds.faults;
      return;
    }
    // Of somebody else's memory, which may come and go meanwhile.
    if (const auto found = policy.find(Address{(Bytes{0x7000} << 32) + below(kDevice) / kGranule * kGranule}))
      if (found->size == 0) ++deeds.faults;
  }
};

}  // namespace

TEST_CASE_METHOD(EachPolicy,
                 "threads that allocate, free each other's blocks, fence, trim and lose streams") {
  Deeds deeds;
  Exchange exchange;
  in_threads(deeds.faults, [&](unsigned thread) {
    Walker walker{*policy, deeds, exchange, thread};
    for (int step = 0; step < 4000; ++step) walker.step();
  });
  CHECK(deeds.faults == 0);
  CHECK_FALSE(policy->audit());
  while (const auto block = exchange.take(0)) CHECK(policy->free(block->address, kNoStream));
  fence();
  policy->trim(0);
  CHECK(backing.held() == 0);
}

TEST_CASE_METHOD(EachPolicy, "of several threads that free one block one succeeds") {
  for (int round = 0; round < 200; ++round) {
    const Block block = get(round % 2 == 0 ? kMiB : 20 * kMiB);
    std::atomic<int> freed{0};
    std::atomic<int> faults{0};
    in_threads(faults, [&](unsigned thread) {
      const auto answer =
          thread % 2 == 0 ? policy->free(block.address, StreamKey{thread}) : policy->free_idle(block.address);
      if (answer)
        ++freed;
      else if (answer.failure().reason != Reason::unknown_block)
        ++faults;
    });
    REQUIRE(freed == 1);
    REQUIRE(faults == 0);
    fence();
  }
}

TEST_CASE_METHOD(EachPolicy,
                 "threads on streams of their own repeat their addresses whatever the others do") {
  std::atomic<int> faults{0};
  in_threads(faults, [&](unsigned thread) {
    const StreamKey stream{1 + thread};
    std::vector<Address> first;
    for (int round = 0; round < 300; ++round) {
      std::vector<Address> blocks;
      for (const Bytes size : {kMiB, 64 * kKiB, 2 * kMiB, 64 * kKiB}) {
        const auto block = policy->allocate({size, stream, false});
        if (!block) return static_cast<void>(++faults);
        blocks.push_back(block.value().address);
      }
      if (round == 2) first = blocks;
      if (round > 2 && blocks != first) ++faults;
      for (const Address& block : blocks)
        if (!policy->free(block, stream)) ++faults;
    }
  });
  CHECK(faults == 0);
}

TEST_CASE_METHOD(EachPolicy, "a stream that dies under its threads takes no block with it") {
  std::atomic<int> faults{0};
  in_threads(faults, [&](unsigned thread) {
    for (int round = 0; round < 2000; ++round) {
      if (thread == 0) {
        policy->forget_stream(kOne);
        continue;
      }
      const auto block = policy->allocate({64 * kKiB * (1 + round % 3), kOne, false});
      if (!block) {
        if (block.failure().reason != Reason::invalid) ++faults;
        continue;
      }
      if (!policy->free(block.value().address, kOne)) ++faults;
    }
  });
  CHECK(faults == 0);
  CHECK(policy->snapshot().live == 0);
  fence();
  policy->trim(0);
  CHECK(backing.held() == 0);
}
