// One policy of the catalogue after the other, on a device of 256 MiB, audited at the end of each test.
// A new policy is one more name here.
#pragma once

#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <vector>

#include "policies/catalogue.hpp"
#include "tests/unit/policies/checked_backing.hpp"

namespace tidepool::testing {

inline constexpr StreamKey kOne{1};
inline constexpr StreamKey kTwo{2};
inline constexpr Bytes kDevice = 256 * kMiB;
inline constexpr Bytes kWholePages = 16 * kMiB;  // as the interface has it: blocks from here on are of pages

struct EachPolicy {
  std::string name = GENERATE(as<std::string>{}, "ondemand", "prealloc");
  CheckedBacking backing{kDevice};
  std::unique_ptr<Policy> policy = make_policy(name, {kDevice, 64 * kMiB}, backing);

  Result<Block> ask(Bytes size, StreamKey stream = kOne, bool fence_possible = true) {
    return policy->allocate({size, stream, fence_possible});
  }
  // As a caller that would rather have memory grow than wait.
  Block get(Bytes size, StreamKey stream = kOne) {
    auto block = ask(size, stream);
    if (!block && block.failure().reason == Reason::needs_fence) block = ask(size, stream, false);
    REQUIRE(block);
    return block.value();
  }
  void put(const Block& block, StreamKey stream = kOne) {
    const auto freed = policy->free(block.address, stream);
    REQUIRE(freed);
    CHECK(freed.value().size == block.size);
  }
  void fence() { policy->close_fence(policy->open_fence()); }
  void check_refused(const Result<Block>& block, Reason reason) {
    REQUIRE_FALSE(block);
    CHECK(block.failure().reason == reason);
  }

  ~EachPolicy() {
    INFO(name);
    const auto fault = policy->audit();
    INFO(fault.value_or(""));
    CHECK_FALSE(fault);
    CHECK(policy->snapshot().reserved == backing.held());
  }
};

inline bool overlap(const Block& a, const Block& b) {
  return a.address < b.address + b.size && b.address < a.address + a.size;
}

}  // namespace tidepool::testing
