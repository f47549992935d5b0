// preallocated's share: when it is taken, what happens where it cannot be, and that it is no border.
#include <catch2/catch.hpp>

#include "policies/catalogue.hpp"
#include "tests/unit/policies/checked_backing.hpp"

using namespace tidepool;
using tidepool::testing::CheckedBacking;

namespace {

constexpr StreamKey kOne{1};
constexpr StreamKey kTwo{2};

struct Preallocating {
  CheckedBacking backing;
  std::unique_ptr<Policy> policy = make_policy("prealloc", {16 * kGiB, 2 * kGiB + 501 * kMiB}, backing);
  static constexpr Bytes kShare = 2 * kGiB + 500 * kMiB;  // whole pages

  Address get(Bytes size, StreamKey stream = kOne, bool fence_possible = true) {
    const auto block = policy->allocate({size, stream, fence_possible});
    REQUIRE(block);
    return block.value().address;
  }
  ~Preallocating() {
    CHECK_FALSE(policy->audit());
    CHECK(policy->snapshot().reserved == backing.held());
  }
};

}  // namespace

TEST_CASE_METHOD(Preallocating, "the share is taken at the first request of 1 MiB, in whole pages") {
  get(kMiB - 1);
  CHECK(backing.held() == kPage);
  get(kMiB);
  CHECK(backing.held() == kShare);
  get(3 * kGiB);  // beyond the share it grows
  CHECK(backing.held() > 3 * kGiB);
}

TEST_CASE_METHOD(Preallocating, "the share is one piece, so that a request of nearly all of it fits") {
  get(kMiB);
  get(kShare - kPage);
  CHECK(backing.held() == kShare);
}

TEST_CASE_METHOD(Preallocating, "a share that the device does not have is taken as far as it goes") {
  backing.capacity = kGiB + 300 * kMiB + kMiB;
  get(kMiB);
  CHECK(backing.held() == kGiB + 300 * kMiB);
}

TEST_CASE_METHOD(Preallocating,
                 "where the driver gives nothing for the share the request is tried all the same") {
  backing.refuse_call = 0;  // the reservation
  backing.refusals = 3;
  static_cast<void>(policy->allocate({kMiB, kOne}));
  backing.refuse_call = -1;
  get(kMiB);
}

TEST_CASE_METHOD(Preallocating, "a caller may trim below the share, which is not taken again") {
  get(kMiB);
  CHECK(policy->trim(kGiB) == kShare - kGiB);
  CHECK(policy->trim(0) == kGiB - kPage);
  get(2 * kMiB);
  CHECK(backing.held() == 2 * kPage);
}

TEST_CASE_METHOD(Preallocating, "within a share once taken and trimmed, memory grows rather than waits") {
  REQUIRE(policy->free(get(64 * kMiB), kOne));
  policy->trim(0);
  CHECK(backing.held() == 64 * kMiB);
  get(64 * kMiB, kTwo);  // on_demand would ask for a fence
  CHECK(backing.held() == 128 * kMiB);
}

TEST_CASE_METHOD(Preallocating, "a share of nothing is on_demand") {
  policy = make_policy("prealloc", {16 * kGiB, 0}, backing);
  get(kMiB);
  CHECK(backing.held() == kPage);
}

TEST_CASE("the catalogue knows no other names") {
  CheckedBacking backing;
  CHECK_FALSE(make_policy("", {kGiB, 0}, backing));
  CHECK_FALSE(make_policy("ondemand ", {kGiB, 0}, backing));
}
