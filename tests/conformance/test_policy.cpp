// What every policy of the catalogue promises, whatever its ways. A new policy is one more name here.
// (Several threads at once: test_threads.cpp.)
#include "tests/conformance/each_policy.hpp"

using namespace tidepool;
using namespace tidepool::testing;

TEST_CASE_METHOD(EachPolicy, "a block that is freed idle is anybody's at once, an unknown one nobody's") {
  const Block block = get(4 * kMiB);
  CHECK_FALSE(policy->free_idle(block.address + kGranule));
  REQUIRE(policy->free_idle(block.address));
  CHECK_FALSE(policy->free_idle(block.address));
  const auto again = ask(4 * kMiB, kTwo, false);
  REQUIRE(again);
  CHECK(again.value().address == block.address);
  put(again.value(), kTwo);
}

TEST_CASE_METHOD(EachPolicy, "a size of 0 is invalid, one beyond the device or the numbers out of memory") {
  check_refused(ask(0), Reason::invalid);
  for (const Bytes size : {kUnlimited, kUnlimited - 1, kUnlimited - kPage, kUnlimited / 2, kDevice + 1})
    check_refused(ask(size), Reason::out_of_memory);
  CHECK(policy->snapshot().live == 0);
}

TEST_CASE_METHOD(EachPolicy, "a block is aligned, long enough, on committed memory and its own") {
  std::vector<Block> blocks;
  for (const Bytes size : {Bytes{1}, Bytes{511}, Bytes{513}, 70'001 * Bytes{1}, kMiB + 1, kWholePages - 1,
                           kWholePages, kWholePages + 1, 40 * kMiB}) {
    const StreamKey stream{size % 3};
    const Block block = get(size, stream);
    CHECK(block.size >= size);
    CHECK(block.size - size < kGranule);
    CHECK(block.address.value % (size < kWholePages ? kGranule : kPage) == 0);
    CHECK(backing.usable({block.address, block.size}));
    for (const Block& other : blocks) CHECK_FALSE(overlap(block, other));
    blocks.push_back(block);
  }
}

TEST_CASE_METHOD(EachPolicy, "freeing what is not the start of a live block changes nothing") {
  const Block block = get(kMiB);
  for (const Address address :
       {Address{}, block.address + 1, block.address + kGranule, block.address + block.size}) {
    const auto freed = policy->free(address, kOne);
    REQUIRE_FALSE(freed);
    CHECK(freed.failure().reason == Reason::unknown_block);
  }
  CHECK(policy->snapshot().live == block.size);
  put(block);
  CHECK_FALSE(policy->free(block.address, kOne));
  CHECK_FALSE(policy->free(block.address, kNoStream));
  CHECK(policy->snapshot().live == 0);
}

TEST_CASE_METHOD(EachPolicy, "a stream has its freed block back at once, in every size class") {
  for (const Bytes size : {kGranule, kMiB, 20 * kMiB}) {
    const Block block = get(size);
    put(block);
    CHECK(get(size).address == block.address);
  }
}

TEST_CASE_METHOD(EachPolicy, "another stream has it only after a fence") {
  const Block block = get(kDevice);
  put(block);
  check_refused(ask(kMiB, kTwo), Reason::needs_fence);
  check_refused(ask(kMiB, kNoStream), Reason::needs_fence);
  check_refused(ask(kMiB, kTwo, false), Reason::out_of_memory);
  fence();
  CHECK(overlap(get(kDevice, kTwo), block));
}

TEST_CASE_METHOD(EachPolicy, "a block belongs to the stream it was freed on, not to the one it came from") {
  put(get(kDevice, kOne), kTwo);
  check_refused(ask(kDevice, kOne), Reason::needs_fence);
  CHECK(ask(kDevice, kTwo));
}

TEST_CASE_METHOD(EachPolicy, "memory freed without a stream waits for a fence that opens later") {
  const Block block = get(kDevice, kNoStream);
  const Fence before = policy->open_fence();
  put(block, kNoStream);
  CHECK(policy->snapshot().in_limbo == kDevice);
  check_refused(ask(kMiB), Reason::needs_fence);
  policy->close_fence(before);
  check_refused(ask(kMiB), Reason::needs_fence);
  check_refused(ask(kMiB, kNoStream), Reason::needs_fence);
  fence();
  CHECK(policy->snapshot().in_limbo == 0);
  CHECK(ask(kDevice, kNoStream));
}

TEST_CASE_METHOD(EachPolicy, "a later fence covers an earlier one, a repeated or late one does no harm") {
  const Block earlier = get(kMiB);
  const Block later = get(kMiB);
  put(earlier, kNoStream);
  const Fence first = policy->open_fence();
  put(later, kNoStream);
  const Fence second = policy->open_fence();
  policy->close_fence(second);
  CHECK(policy->snapshot().in_limbo == 0);
  put(get(kMiB, kNoStream), kNoStream);
  policy->close_fence(first);
  policy->close_fence(second);
  CHECK(policy->snapshot().in_limbo == kMiB);
}

TEST_CASE_METHOD(EachPolicy,
                 "an earlier fence that closes late takes nothing back of what a later one freed") {
  const Block block = get(kDevice);
  const Fence first = policy->open_fence();
  put(block);
  const Fence second = policy->open_fence();
  policy->close_fence(second);
  policy->close_fence(first);
  CHECK(ask(kDevice, kTwo));
}

TEST_CASE_METHOD(EachPolicy, "a fence covers what was freed before it opened, not before the latest one") {
  const Block earlier = get(kMiB);
  const Block later = get(2 * kMiB);
  put(earlier, kNoStream);
  const Fence first = policy->open_fence();
  put(later, kNoStream);
  const Fence second = policy->open_fence();
  policy->close_fence(first);
  CHECK(policy->snapshot().in_limbo == 2 * kMiB);
  policy->close_fence(second);
  CHECK(policy->snapshot().in_limbo == 0);
}

TEST_CASE_METHOD(EachPolicy, "a fence does not cost a stream the reuse of its sizes") {
  std::vector<Block> blocks;
  for (int i = 0; i < 4; ++i) blocks.push_back(get(3 * kMiB));
  for (const Block& block : blocks) put(block);
  fence();
  for (const Block& block : blocks) CHECK(get(3 * kMiB).address == block.address);
}

TEST_CASE_METHOD(EachPolicy, "a block freed again after a fence waits for the next one") {
  const Block block = get(kDevice);
  put(block);
  fence();
  put(get(kDevice));
  check_refused(ask(kMiB, kTwo), Reason::needs_fence);
}

TEST_CASE_METHOD(EachPolicy, "a new stream with a dead one's name has none of its memory before a fence") {
  put(get(kDevice));
  policy->forget_stream(kOne);
  CHECK(policy->snapshot().in_limbo == kDevice);
  check_refused(ask(kDevice), Reason::needs_fence);
  fence();
  CHECK(ask(kDevice));
  policy->forget_stream(kTwo);  // one never seen
}

TEST_CASE_METHOD(EachPolicy, "what a dying stream had from before a fence is free for all at once") {
  put(get(kDevice));
  fence();
  policy->forget_stream(kOne);
  CHECK(policy->snapshot().in_limbo == 0);
  CHECK(ask(kDevice, kTwo));
}

TEST_CASE_METHOD(EachPolicy, "trim gives back nothing that is live or unfenced, then all that is free") {
  const Block kept = get(2 * kMiB);
  const Block block = get(128 * kMiB);
  put(block);
  const Bytes before = policy->trim(0);  // at most what the policy had beyond the two
  CHECK(backing.usable({block.address, block.size}));
  fence();
  CHECK(policy->trim(backing.held()) == 0);
  const Bytes promised = policy->snapshot().releasable;
  CHECK(promised + before >= 64 * kMiB);
  CHECK(policy->trim(0) == promised);
  CHECK(policy->snapshot().releasable == 0);
  CHECK(backing.usable({kept.address, kept.size}));
  put(kept);
  fence();
  policy->trim(0);
  CHECK(backing.held() == 0);
}

TEST_CASE_METHOD(EachPolicy, "after a trim memory comes from addresses never used") {
  for (int round = 0; round < 20; ++round) {  // the backing throws where an address repeats
    const Block block = get(100 * kMiB);
    put(block);
    fence();
    policy->trim(0);
    CHECK(backing.held() == 0);
  }
}

TEST_CASE_METHOD(EachPolicy, "find answers for every byte of a live block and for nothing else") {
  const Block block = get(3 * kMiB);
  for (const Bytes offset : {Bytes{0}, Bytes{1}, block.size - 1}) {
    const auto found = policy->find(block.address + offset);
    REQUIRE(found);
    CHECK(found->address == block.address);
    CHECK(found->size == block.size);
  }
  CHECK_FALSE(policy->find(block.address + block.size));
  CHECK_FALSE(policy->find(Address{block.address.value - 1}));
  CHECK_FALSE(policy->find(Address{}));
  CHECK_FALSE(policy->find(Address{kUnlimited}));
  put(block);
  CHECK_FALSE(policy->find(block.address));
}

TEST_CASE_METHOD(EachPolicy, "the snapshot adds up, and its peak stays") {
  const Block live = get(5 * kMiB);
  put(get(7 * kMiB));
  put(get(9 * kMiB, kTwo), kNoStream);
  const Snapshot now = policy->snapshot();
  CHECK(now.live == live.size);
  CHECK(now.in_limbo == 9 * kMiB);
  CHECK(now.cached >= 7 * kMiB);
  CHECK(now.live + now.cached + now.in_limbo == now.reserved);
  put(live);
  fence();
  policy->trim(0);
  CHECK(policy->snapshot().reserved == 0);
  CHECK(policy->snapshot().reserved_peak == now.reserved_peak);
}

TEST_CASE_METHOD(EachPolicy, "the largest free request is served without growth or fence, for any stream") {
  put(get(50 * kMiB));
  put(get(3 * kMiB, kTwo), kTwo);
  fence();
  const Bytes largest = policy->snapshot().largest_free;
  const Bytes held = backing.held();
  CHECK(largest >= 48 * kMiB);
  CHECK(ask(largest, kNoStream, false));
  CHECK(backing.held() == held);
}

TEST_CASE_METHOD(EachPolicy, "the whole device can be had, and not a byte more") {
  get(kDevice);
  check_refused(ask(1), Reason::out_of_memory);
}

TEST_CASE_METHOD(EachPolicy, "a limit of the process is told from the device's end") {
  backing.limit = 100 * kMiB;
  get(90 * kMiB);
  check_refused(ask(20 * kMiB), Reason::limit);
}
