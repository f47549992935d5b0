// What every policy promises of the blocks it knows: labels, numbers, look-ups. Where memory comes from and
// when is test_policy.cpp.
#include <map>
#include <set>

#include "tests/conformance/each_policy.hpp"

using namespace tidepool;
using namespace tidepool::testing;

namespace {

void check_label(const Block& block, const Request& asked, std::uint64_t number) {
  CHECK(block.label.requested == asked.size);
  CHECK(block.label.owner == asked.owner);
  CHECK(block.label.tag == asked.tag);
  CHECK(block.label.number == number);
}

}  // namespace

TEST_CASE_METHOD(EachPolicy, "a label comes back unchanged, whoever asks, for fresh memory and for reused") {
  const StreamKey stream = GENERATE(kNoStream, kOne);
  for (int round = 0; round < 4; ++round) {  // from the third on out of the stream's cache
    std::map<Address, std::pair<Request, Block>> asked;
    for (const Bytes size : {Bytes{1}, Bytes{700}, kMiB + 1, 20 * kMiB - 1}) {
      const std::uint64_t owner = 0xFEED'0000'0000'0000u + size + static_cast<std::uint64_t>(round);
      const Request request{size, stream, false, owner, 0x8000'0000u + static_cast<std::uint32_t>(round)};
      const auto block = policy->allocate(request);
      REQUIRE(block);
      check_label(block.value(), request, block.value().label.number);
      asked[block.value().address] = {request, block.value()};
    }
    std::size_t seen = 0;
    policy->each_live([&](const Block& block) {
      const auto& [request, given] = asked.at(block.address);
      check_label(block, request, given.label.number);
      CHECK(block.size == given.size);
      ++seen;
    });
    CHECK(seen == asked.size());
    for (const auto& [address, one] : asked) {
      const auto& [request, given] = one;
      check_label(policy->find(address).value(), request, given.label.number);
      check_label(policy->find(address + (given.size - 1)).value(), request, given.label.number);
      const auto freed = round == 3 ? policy->free_idle(address) : policy->free(address, stream);
      REQUIRE(freed);
      check_label(freed.value(), request, given.label.number);
      CHECK(freed.value().address == address);
      CHECK(freed.value().size == given.size);
    }
    fence();
  }
}

TEST_CASE_METHOD(EachPolicy, "no two blocks ever have one number, on no stream, through streams that die") {
  std::set<std::uint64_t> numbers;
  for (int life = 0; life < 4; ++life) {
    for (std::uint64_t key = 0; key < 5; ++key)
      for (int i = 0; i < 5; ++i) {
        const Block block = get(3 * kMiB, StreamKey{key});
        INFO("stream " << key << ", life " << life);
        CHECK(numbers.insert(block.label.number).second);
        CHECK(block.label.number != 0);
        put(block, StreamKey{key});
      }
    for (std::uint64_t key = 1; key < 5; ++key) policy->forget_stream(StreamKey{5 - key});
    fence();
  }
}

TEST_CASE_METHOD(EachPolicy, "every live block is visited once and nothing else") {
  std::map<Address, Bytes> live;
  for (Bytes i = 0; i < 60; ++i) {
    const Block block = get(1 + i * 77'777, StreamKey{i % 3});
    live[block.address] = block.size;
  }
  for (int round = 0; round < 3; ++round) {
    for (auto block = live.begin(); block != live.end();) {
      if (block->first.value / kGranule % 3 != 0) {
        ++block;
        continue;
      }
      REQUIRE(policy->free(block->first, round == 0 ? kNoStream : kOne));
      block = live.erase(block);
    }
    std::map<Address, Bytes> seen;
    policy->each_live([&](const Block& block) { CHECK(seen.emplace(block.address, block.size).second); });
    CHECK(seen == live);
    fence();
    policy->trim(0);
    const Block more = get(5 * kMiB, kTwo);
    live[more.address] = more.size;
  }
}

TEST_CASE_METHOD(EachPolicy, "a freed block is not found, nor any byte of it, whichever way it went") {
  for (int round = 0; round < 3; ++round)
    for (const int way : {0, 1, 2}) {
      const Block block = get(4 * kMiB);
      if (way == 0) REQUIRE(policy->free(block.address, kOne));
      if (way == 1) REQUIRE(policy->free(block.address, kNoStream));
      if (way == 2) REQUIRE(policy->free_idle(block.address));
      for (const Bytes offset : {Bytes{0}, kGranule, block.size - 1})
        CHECK_FALSE(policy->find(block.address + offset));
      CHECK_FALSE(policy->free(block.address, kOne));
      CHECK_FALSE(policy->free_idle(block.address));
    }
}

TEST_CASE_METHOD(EachPolicy,
                 "a block freed idle is nobody's that waits: no fence is needed to hand it back") {
  const Block block = get(100 * kMiB);
  REQUIRE(policy->free_idle(block.address));
  CHECK(policy->snapshot().in_limbo == 0);
  policy->trim(0);
  CHECK(backing.held() == 0);
}

TEST_CASE_METHOD(EachPolicy, "a fence that cannot be waited for is never asked for") {
  put(get(kDevice - 20 * kMiB), kNoStream);
  for (const Bytes size : {kGranule, kMiB, 20 * kMiB, 40 * kMiB, kDevice}) {
    const auto block = ask(size, kTwo, false);
    if (!block) CHECK(block.failure().reason == Reason::out_of_memory);
  }
}

TEST_CASE_METHOD(EachPolicy, "free pages apart from each other serve a large block on a full device") {
  std::vector<Block> blocks;
  for (int i = 0; i < 8; ++i) blocks.push_back(get(32 * kMiB));
  for (std::size_t i = 0; i < 8; i += 2) put(blocks[i]);
  check_refused(ask(128 * kMiB), Reason::needs_fence);
  fence();
  const Block block = get(128 * kMiB);
  CHECK(backing.usable({block.address, block.size}));
  for (std::size_t i = 1; i < 8; i += 2) CHECK_FALSE(overlap(block, blocks[i]));
  check_refused(ask(1), Reason::out_of_memory);
}
