// The order in which on_demand looks for memory, and when it asks for a fence. How memory then grows is
// test_growth.cpp. (tests/conformance holds for every policy.)
#include <algorithm>
#include <vector>

#include "tests/unit/policies/engine.hpp"
#include "tests/unit/policies/failing_new.hpp"

using namespace tidepool;
using namespace tidepool::testing;

// A size that was asked for twice waits in the stream's cache when it is freed, whole.

TEST_CASE_METHOD(Engine, "a loop gets the same addresses whatever the order of its frees") {
  std::vector<Address> first;
  for (int i = 0; i < 6; ++i) first.push_back(get(kMiB));
  for (const std::vector<std::size_t>& order :
       {std::vector<std::size_t>{0, 1, 2, 3, 4, 5}, {5, 4, 3, 2, 1, 0}, {3, 0, 5, 1, 4, 2}}) {
    for (const std::size_t i : order) put(first[i]);
    for (const Address& address : first) CHECK(get(kMiB) == address);
  }
}

TEST_CASE_METHOD(Engine, "on a miss a stream's cached blocks are joined and cut anew, without growth") {
  std::vector<Address> blocks;
  for (int i = 0; i < 8; ++i) blocks.push_back(get(kMiB));
  for (const Address& block : blocks) put(block);
  const Bytes held = backing.held();
  CHECK(get(8 * kMiB) == blocks[0]);
  CHECK(backing.held() == held);
}

TEST_CASE_METHOD(Engine, "free memory is taken before the stream's cache is taken apart") {
  const Address cached = get(2 * kMiB);
  get(2 * kMiB);
  const Address other = get(4 * kMiB);
  put(cached);
  put_idle(other);
  CHECK(get(kMiB) == other);
  CHECK(get(2 * kMiB) == cached);
}

TEST_CASE_METHOD(Engine, "what all streams cached before a closed fence serves before memory grows") {
  std::vector<Address> blocks;
  for (Bytes i = 0; i < 8; ++i)
    for (int twice = 0; twice < 2; ++twice) blocks.push_back(get(kMiB, StreamKey{10 + i}));
  for (Bytes i = 0; i < 16; ++i) put(blocks[i], StreamKey{10 + i / 2});
  const Bytes held = backing.held();
  CHECK(policy.snapshot().largest_free < 16 * kMiB - kGranule);
  fence();
  CHECK(get(16 * kMiB - kGranule, kOne, false) == blocks[0]);
  CHECK(backing.held() == held);
}

TEST_CASE_METHOD(Engine, "a block may join a stream's own memory with what is free for everybody") {
  const Address own = get(3 * kMiB);
  put(own);
  REQUIRE(backing.held() == 4 * kMiB);
  CHECK(get(4 * kMiB) == own);
  CHECK(backing.held() == 4 * kMiB);
}

TEST_CASE_METHOD(Engine, "memory of the stream on both sides of everybody's makes one block") {
  std::vector<Address> blocks;
  for (Bytes i = 0; i < 4; ++i) blocks.push_back(get((4 + i) * kMiB));
  get(2 * kMiB);
  put_idle(blocks[1]);
  put(blocks[0]);
  fence();  // the outer ones are of different epochs, so they wait apart
  put(blocks[2]);
  const Bytes held = backing.held();
  CHECK(get(15 * kMiB) == blocks[0]);
  CHECK(backing.held() == held);
}

TEST_CASE_METHOD(Engine, "the better fit of what the stream freed and what is everybody's is taken") {
  const Address wide = get(6 * kMiB);
  get(kMiB);
  const Address narrow = get(5 * kMiB);
  get(kMiB);
  SECTION("the stream's own is narrower") {
    put_idle(wide);
    put(narrow);
    CHECK(get(4 * kMiB) == narrow);
  }
  SECTION("everybody's is narrower") {
    put_idle(narrow);
    put(wide);
    CHECK(get(4 * kMiB) == narrow);
  }
}

TEST_CASE_METHOD(Engine, "of two equal fits the stream's own is taken, which serves nobody else") {
  const Address everybodys = get(5 * kMiB, kTwo);
  get(kMiB);
  const Address own = get(5 * kMiB);
  get(2 * kMiB);
  put_idle(everybodys);
  put(own);
  CHECK(get(4 * kMiB) == own);
}

TEST_CASE_METHOD(Engine,
                 "large blocks go among large ones though what is free among small ones fits better") {
  const Address small = get(15 * kMiB);
  const Address behind = get(5 * kMiB);
  get(2 * kMiB);
  const Address large = get(30 * kMiB);
  get(kLarge);
  for (const Address block : {small, behind, large}) put_idle(block);
  CHECK(get(kLarge) == large);
}

TEST_CASE_METHOD(Engine, "small blocks go among small ones though a large one's rest fits better") {
  get(kLarge + kMiB);  // 1 MiB of its last page is free
  const Address small = get(7 * kMiB);
  get(8 * kMiB);
  put_idle(small);
  CHECK(get(kMiB) == small);
}

TEST_CASE_METHOD(Engine, "the rest of a large block's last page serves before memory grows") {
  const Address large = get(kLarge + kMiB);
  const Bytes held = backing.held();
  CHECK(get(kMiB) == large + (kLarge + kMiB));
  CHECK(backing.held() == held);
}

TEST_CASE_METHOD(Engine, "a large block lies among small ones before memory grows") {
  const Address block = get(10 * kMiB);
  const Address behind = get(10 * kMiB);
  put_idle(block);
  put_idle(behind);
  const Bytes held = backing.held();
  const Address large = get(kLarge);
  CHECK(block <= large);
  CHECK(large < behind);
  CHECK(backing.held() == held);
}

TEST_CASE_METHOD(Engine, "of many pieces that are long enough the aligned one is found, on a full device") {
  constexpr Bytes kPad = 3 * kGranule;
  put_idle(get(13 * 18 * kMiB + 2 * kMiB));  // all of the following lies in it, in a row
  std::vector<Address> freed;
  for (int i = 0; i < 13; ++i) {
    // What is free in the first twelve begins behind a page and has 16 MiB from the next one on; the last
    // is free from its page on, and not a page longer than what is asked for.
    const Bytes pad = i < 12 ? kPad : 0;
    get(i < 12 ? kPad : kPage);
    freed.push_back(get(9 * kMiB));
    freed.push_back(get(9 * kMiB - pad));
  }
  for (const Address block : freed) put_idle(block);
  backing.capacity = backing.held();
  backing.refuse_moves = true;
  CHECK(get(kLarge + kGranule) == freed[24]);
}

TEST_CASE_METHOD(Engine, "little more than the peak is grown before a fence, and no more than that") {
  const Address block = get(kGiB);
  put(block);
  get(16 * kMiB, kTwo);  // within the slack
  CHECK(refusal(kGiB, kTwo) == Reason::needs_fence);
  fence();
  CHECK(get(kGiB, kTwo) == block);
  CHECK(backing.held() == kGiB + 16 * kMiB);
}

TEST_CASE_METHOD(Engine,
                 "a fence that would free pages apart from each other is asked for: they can be moved") {
  std::vector<Address> blocks;
  for (int i = 0; i < 8; ++i) blocks.push_back(get(64 * kMiB));
  for (std::size_t i = 0; i < 8; i += 2) put(blocks[i]);
  CHECK(refusal(128 * kMiB, kTwo) == Reason::needs_fence);
  fence();
  const Bytes held = backing.held();
  get(128 * kMiB, kTwo);
  CHECK(backing.held() - held <= 512 * kMiB / 40);
}

TEST_CASE_METHOD(Engine, "where a fence would free no whole pages memory grows at once") {
  std::vector<Address> blocks;
  for (int i = 0; i < 256; ++i) blocks.push_back(get(kMiB));
  for (std::size_t i = 0; i < 256; i += 2) put(blocks[i]);
  const Bytes held = backing.held();
  get(64 * kMiB, kTwo);
  CHECK(backing.held() >= held + 60 * kMiB);  // what pages were free are part of it
}

TEST_CASE_METHOD(Engine,
                 "a fence is asked for what lies in limbo, in a stream's cache and loose with a stream") {
  const Address block = get(256 * kMiB);
  const Address again = GENERATE(false, true) ? get(256 * kMiB) : block;
  if (again != block) put_idle(again);
  const StreamKey where = GENERATE(kNoStream, kOne);
  put(block, where);
  get(16 * kMiB, kTwo, false);
  CHECK(refusal(300 * kMiB, kTwo) == Reason::needs_fence);
}

TEST_CASE_METHOD(Engine, "who cannot wait gets growth instead of a fence") {
  put(get(256 * kMiB));
  CHECK(refusal(256 * kMiB, kTwo) == Reason::needs_fence);
  get(256 * kMiB, kTwo, false);
  CHECK(backing.held() == 512 * kMiB);
}

TEST_CASE_METHOD(Engine, "at the device's end a fence comes before failure, failure where none helps") {
  backing.capacity = 64 * kMiB;
  const Address block = get(64 * kMiB);
  CHECK(refusal(kMiB) == Reason::out_of_memory);
  put(block, kNoStream);
  CHECK(refusal(kMiB, kOne, false) == Reason::out_of_memory);
  CHECK(refusal(kMiB) == Reason::needs_fence);
  fence();
  CHECK(get(64 * kMiB) == block);
}

TEST_CASE_METHOD(Engine, "the reason that the backing gives is passed on") {
  backing.limit = 32 * kMiB;
  CHECK(refusal(33 * kMiB) == Reason::limit);
  get(kMiB);
  put(get(2 * kMiB));  // a fence would be possible, but mends no driver
  backing.refuse_call = 0;
  backing.refusals = 100;
  const auto block = policy.allocate({64 * kMiB, kOne});
  REQUIRE_FALSE(block);
  CHECK(block.failure().reason == Reason::driver);
  CHECK(block.failure().code == 999);
  backing.refuse_call = -1;
}

TEST_CASE_METHOD(Engine, "a request that fails for good does not let later ones grow instead of wait") {
  backing.capacity = 3 * kGiB;
  const Address block = get(kGiB);
  CHECK(refusal(4 * kGiB) == Reason::out_of_memory);
  policy.trim(0);
  put(block);
  get(16 * kMiB, kTwo);
  CHECK(refusal(kGiB, kTwo) == Reason::needs_fence);
}

TEST_CASE_METHOD(Engine, "loose pieces that a fence covers do not wait for later frees beside them") {
  const Address earlier = get(kLarge);
  const Address later = get(18 * kMiB);
  get(kLarge);
  put(earlier);
  const Fence open = policy.open_fence();
  put(later);
  policy.close_fence(open);
  const Bytes held = backing.held();
  CHECK(get(kLarge, kTwo) == earlier);
  CHECK(backing.held() == held);
}

TEST_CASE_METHOD(Engine,
                 "a stream's name may be another's after it died, and neither has the other's memory") {
  for (int life = 0; life < 5; ++life) {
    const Address block = get(4 * kMiB);
    get(4 * kMiB);
    put(block);
    policy.forget_stream(kOne);
    CHECK(policy.snapshot().in_limbo == 4 * kMiB);
    CHECK(get(4 * kMiB) != block);
    fence();
  }
}

TEST_CASE_METHOD(Engine, "streams that come and go need no host memory of their own each") {
  const auto live_once = [&] {
    const auto block = policy.allocate({4 * kMiB, kOne});
    static_cast<void>(policy.free(block.value().address, kOne));
    policy.forget_stream(kOne);
    policy.close_fence(policy.open_fence());
  };
  live_once();
  CHECK_FALSE(throws_without_memory(0, [&] {
    for (int life = 0; life < 1000; ++life) live_once();
  }));
}
