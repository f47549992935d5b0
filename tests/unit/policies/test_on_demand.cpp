// What is particular to on_demand and preallocated: when memory grows, when a fence is asked for, and
// what happens when the device or the host has no more. (tests/conformance holds for every policy.)
#include <catch2/catch.hpp>

#include "policies/catalogue.hpp"
#include "policies/on_demand.hpp"
#include "tests/unit/policies/checked_backing.hpp"
#include "tests/unit/policies/failing_new.hpp"

using namespace tidepool;
using tidepool::testing::CheckedBacking;

namespace {

constexpr StreamKey kOne{1};
constexpr StreamKey kTwo{2};

struct Fixture {
  CheckedBacking backing;
  OnDemand policy{PolicyConfig{8 * kGiB, 0}, backing};

  Address get(Bytes size, StreamKey stream = kOne) {
    const auto block = policy.allocate({size, stream});
    REQUIRE(block);
    return block.value().address;
  }
  void put(Address address, StreamKey stream = kOne) { REQUIRE(policy.free(address, stream)); }
  Reason refusal(Bytes size, StreamKey stream = kOne, bool fence_possible = true) {
    const auto block = policy.allocate({size, stream, fence_possible});
    REQUIRE_FALSE(block);
    return block.failure().reason;
  }
  ~Fixture() {
    const auto fault = policy.audit();
    INFO(fault.value_or(""));
    CHECK_FALSE(fault);
  }
};

}  // namespace

TEST_CASE_METHOD(Fixture, "a loop gets the same addresses whatever the order of its frees") {
  std::vector<Address> first;
  for (int i = 0; i < 6; ++i) first.push_back(get(kMiB));
  for (const std::vector<std::size_t>& order :
       {std::vector<std::size_t>{0, 1, 2, 3, 4, 5}, {5, 4, 3, 2, 1, 0}, {3, 0, 5, 1, 4, 2}}) {
    for (const std::size_t i : order) put(first[i]);
    for (const Address& address : first) CHECK(get(kMiB) == address);
  }
}

TEST_CASE_METHOD(Fixture, "on a miss a stream's cached blocks are joined and cut anew, without growth") {
  std::vector<Address> blocks;
  for (int i = 0; i < 8; ++i) blocks.push_back(get(kMiB));
  for (const Address& block : blocks) put(block);
  const Bytes held = backing.held();
  CHECK(get(8 * kMiB) == blocks[0]);
  CHECK(backing.held() == held);
}

TEST_CASE_METHOD(Fixture, "a block may join a stream's own memory with what is free for everybody") {
  const Address own = get(3 * kMiB);
  put(own);
  REQUIRE(backing.held() == 4 * kMiB);
  CHECK(get(4 * kMiB) == own);
  CHECK(backing.held() == 4 * kMiB);
}

TEST_CASE_METHOD(Fixture, "little more than the peak is grown before a fence, and no more than that") {
  const Address block = get(256 * kMiB);
  put(block);
  get(16 * kMiB, kTwo);  // within the slack
  CHECK(refusal(256 * kMiB, kTwo) == Reason::needs_fence);
  policy.close_fence(policy.open_fence());
  CHECK(get(256 * kMiB, kTwo) == block);
}

TEST_CASE_METHOD(Fixture, "a fence is asked for only where it is certain to serve") {
  std::vector<Address> blocks;
  for (int i = 0; i < 8; ++i) blocks.push_back(get(64 * kMiB));
  for (std::size_t i = 0; i < 8; i += 2) put(blocks[i]);  // 256 MiB, no two adjoining
  CHECK(policy.allocate({128 * kMiB, kTwo}));
}

TEST_CASE_METHOD(Fixture, "who cannot wait gets growth instead of a fence") {
  put(get(256 * kMiB));
  CHECK(refusal(256 * kMiB, kTwo) == Reason::needs_fence);
  CHECK(policy.allocate({256 * kMiB, kTwo, false}));
}

TEST_CASE_METHOD(Fixture, "at the device's end a fence comes before failure, failure where none helps") {
  backing.capacity = 64 * kMiB;
  const Address block = get(64 * kMiB);
  CHECK(refusal(kMiB) == Reason::out_of_memory);
  put(block, kNoStream);
  CHECK(refusal(kMiB, kOne, false) == Reason::out_of_memory);
  CHECK(refusal(kMiB) == Reason::needs_fence);
  policy.close_fence(policy.open_fence());
  CHECK(get(64 * kMiB) == block);
}

TEST_CASE_METHOD(Fixture, "the reason that the backing gives is passed on") {
  backing.limit = 32 * kMiB;
  CHECK(refusal(33 * kMiB) == Reason::limit);
  get(kMiB);
  backing.refuse_call = 0;
  const auto block = policy.allocate({64 * kMiB, kOne});
  REQUIRE_FALSE(block);
  CHECK(block.failure().reason == Reason::driver);
  CHECK(block.failure().code == 999);
}

TEST_CASE_METHOD(Fixture, "free commits apart from each other are traded for one block") {
  backing.capacity = 128 * kMiB;
  std::vector<Address> blocks;
  for (int i = 0; i < 4; ++i) blocks.push_back(get(32 * kMiB));
  put(blocks[0]);
  put(blocks[2]);
  CHECK(refusal(64 * kMiB) == Reason::needs_fence);  // the host must have seen the device finish
  policy.close_fence(policy.open_fence());
  get(64 * kMiB);
  CHECK(backing.held() == 128 * kMiB);
}

TEST_CASE_METHOD(Fixture, "loose ranges that a fence covers do not wait for later frees") {
  const Address block = get(64 * kMiB);
  put(block);
  CHECK(get(48 * kMiB) == block);  // takes the cache apart: 16 MiB are loose
  const Fence fence = policy.open_fence();
  put(get(17 * kMiB));
  get(18 * kMiB);  // takes it apart again, while the fence is open
  policy.close_fence(fence);
  const Bytes held = backing.held();
  CHECK(get(16 * kMiB, kTwo) == block + 48 * kMiB);
  CHECK(backing.held() == held);
}

TEST_CASE("the share is taken at the first request of 1 MiB, in units of at most 1 GiB") {
  CheckedBacking backing;
  const auto policy = make_policy("prealloc", {16 * kGiB, 2 * kGiB + 500 * kMiB}, backing);
  REQUIRE(policy->allocate({kMiB - 1, kOne}));
  CHECK(backing.held() == kPage);
  REQUIRE(policy->allocate({kMiB, kOne}));
  CHECK(backing.held() == 2 * kGiB + 500 * kMiB);
  CHECK(backing.pieces() == 4);
  REQUIRE(policy->allocate({3 * kGiB, kOne}));  // beyond the share it grows
  CHECK_FALSE(policy->audit());
}

TEST_CASE("a share that the device does not have is taken as far as it goes") {
  CheckedBacking backing(kGiB + 300 * kMiB + kMiB);
  const auto policy = make_policy("prealloc", {16 * kGiB, 8 * kGiB}, backing);
  CHECK(policy->allocate({kMiB, kOne}));
  CHECK(backing.held() == kGiB + 300 * kMiB);
  CHECK_FALSE(policy->audit());
}

TEST_CASE("a caller may trim below the share, which is not taken again") {
  CheckedBacking backing;
  const auto policy = make_policy("prealloc", {16 * kGiB, 4 * kGiB}, backing);
  REQUIRE(policy->allocate({kMiB, kOne}));
  CHECK(policy->trim(2 * kGiB) == 2 * kGiB);
  CHECK(policy->trim(0) == kGiB);
  REQUIRE(policy->allocate({2 * kMiB, kOne}));
  CHECK(backing.held() == kGiB);
}

TEST_CASE("the catalogue knows no other names") {
  CheckedBacking backing;
  CHECK_FALSE(make_policy("", {kGiB, 0}, backing));
  CHECK_FALSE(make_policy("ondemand ", {kGiB, 0}, backing));
}
