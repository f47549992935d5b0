// One on_demand policy on a checked device, for tests of how it finds memory. It is audited at the end of
// each test, and holds what the backing holds.
#pragma once

#include <catch2/catch.hpp>

#include "policies/on_demand.hpp"
#include "tests/unit/policies/checked_backing.hpp"

namespace tidepool::testing {

inline constexpr StreamKey kOne{1};
inline constexpr StreamKey kTwo{2};

struct Engine {
  CheckedBacking backing;
  OnDemand policy{PolicyConfig{8 * kGiB, 0}, backing};

  Address get(Bytes size, StreamKey stream = kOne, bool fence_possible = true) {
    const auto block = policy.allocate({size, stream, fence_possible});
    REQUIRE(block);
    REQUIRE(backing.usable({block.value().address, block.value().size}));
    return block.value().address;
  }
  void put(Address address, StreamKey stream = kOne) { REQUIRE(policy.free(address, stream)); }
  // Free for everybody at once.
  void put_idle(Address address) { REQUIRE(policy.free_idle(address)); }
  Reason refusal(Bytes size, StreamKey stream = kOne, bool fence_possible = true) {
    const auto block = policy.allocate({size, stream, fence_possible});
    REQUIRE_FALSE(block);
    return block.failure().reason;
  }
  void fence() { policy.close_fence(policy.open_fence()); }

  ~Engine() {
    const auto fault = policy.audit();
    INFO(fault.value_or(""));
    CHECK_FALSE(fault);
    CHECK(policy.snapshot().reserved == backing.held());
  }
};

}  // namespace tidepool::testing
