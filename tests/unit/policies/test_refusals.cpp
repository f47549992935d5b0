// For every n: the n-th call to the backing, or all from the n-th on, or the n-th host allocation, fails in
// the middle of one fixed program. The books stay right, no memory is lost, and the program can be finished
// and run again.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "policies/catalogue.hpp"
#include "tests/unit/policies/sheltered_backing.hpp"

using namespace tidepool;
using namespace tidepool::testing;

namespace {

constexpr Bytes kDevice = 128 * kMiB;
constexpr PolicyConfig kConfig{kDevice, 64 * kMiB};

// Touches every path: caches, joining, limbo, fences, growth from a tail, moved pages, a dying stream, trim.
class Program {
 public:
  explicit Program(Policy& policy) : policy_(policy) { blocks_.reserve(256); }

  void run() {
    for (Bytes i = 0; i < 12; ++i) get((1 + i / 2) * 700 * kKiB, StreamKey{i % 3});  // each size twice
    const std::size_t first_large = blocks_.size();
    for (Bytes i = 0; i < 5; ++i) get(17 * kMiB, StreamKey{1});
    put_idle(first_large);
    put_idle(first_large + 2);
    get(30 * kMiB, StreamKey{1});  // of pages from here and there
    put_all(StreamKey{1}, first_large);
    for (std::size_t i = 0; i < first_large; i += 2) put(i, StreamKey{i % 4});
    get(5 * kMiB, StreamKey{1});
    const Fence fence = policy_.open_fence();
    get(9 * kMiB, StreamKey{2});
    put(blocks_.size() - 1, StreamKey{2});
    policy_.close_fence(fence);
    get(40 * kMiB, StreamKey{2});
    put_idle(blocks_.size() - 1);
    get(3 * kMiB, kNoStream);
    policy_.forget_stream(StreamKey{2});
    put_all(StreamKey{1});
    policy_.snapshot();
    get(30 * kMiB, StreamKey{1});
    policy_.close_fence(policy_.open_fence());
    policy_.trim(8 * kMiB);
    get(4 * kMiB, StreamKey{2});
    get(70 * kMiB, StreamKey{3});
  }

  void finish() {
    put_all(kNoStream);
    policy_.close_fence(policy_.open_fence());
  }

  bool all_served() const { return blocks_.size() == asked_; }

 private:
  void get(Bytes size, StreamKey stream) {
    ++asked_;
    if (const auto block = policy_.allocate({size, stream, false})) blocks_.push_back(block.value().address);
  }
  void put(std::size_t i, StreamKey stream) {
    if (i >= blocks_.size() || blocks_[i] == Address{}) return;
    if (policy_.free(blocks_[i], stream)) blocks_[i] = Address{};
  }
  void put_idle(std::size_t i) {
    if (i >= blocks_.size() || blocks_[i] == Address{}) return;
    if (policy_.free_idle(blocks_[i])) blocks_[i] = Address{};
  }
  void put_all(StreamKey stream, std::size_t from = 0) {
    for (std::size_t i = from; i < blocks_.size(); ++i) put(i, stream);
  }

  Policy& policy_;
  std::vector<Address> blocks_;
  std::size_t asked_ = 0;
};

void check_books(Policy& policy, const CheckedBacking& backing) {
  const auto fault = policy.audit();
  INFO(fault.value_or(""));
  REQUIRE_FALSE(fault);
  const Snapshot now = policy.snapshot();
  REQUIRE(now.reserved == backing.held());
  REQUIRE(now.live + now.cached + now.in_limbo == now.reserved);
  REQUIRE_FALSE(policy.audit());
}

// Finishes the program and runs it again on a device that has enough.
void go_on(Policy& policy, CheckedBacking& backing, Program& disturbed) {
  disturbed.finish();
  check_books(policy, backing);
  backing.capacity = kUnlimited;
  Program again(policy);
  again.run();
  REQUIRE(again.all_served());
  check_books(policy, backing);
  again.finish();
  check_books(policy, backing);
  policy.trim(0);
}

}  // namespace

TEST_CASE("undisturbed, the program moves pages and hands some back, on a device that it fills") {
  for (const char* name : {"ondemand", "prealloc"}) {
    CheckedBacking backing(kDevice);
    const auto policy = make_policy(name, kConfig, backing);
    Program(*policy).run();
    CHECK(policy->snapshot().reserved_peak == kDevice);
    CHECK(backing.move_count > 0);
    CHECK(backing.release_count > 0);
  }
}

TEST_CASE("whichever call the backing refuses, the books stay right and the program goes on") {
  for (const char* name : {"ondemand", "prealloc"}) {
    bool refused = true;
    for (int n = 0; refused; ++n) {
      INFO(name << ", call " << n);
      CheckedBacking backing(kDevice);
      const auto policy = make_policy(name, kConfig, backing);
      backing.refuse_call = n;
      Program program(*policy);
      program.run();
      refused = backing.refuse_call < 0;
      backing.refuse_call = -1;
      check_books(*policy, backing);
      go_on(*policy, backing, program);
      REQUIRE(backing.held() == 0);
    }
  }
}

TEST_CASE(
    "where the backing refuses everything from a call on, the books stay right and tell what was lost") {
  for (const char* name : {"ondemand", "prealloc"}) {
    bool refused = true;
    for (int n = 0; refused; ++n) {
      INFO(name << ", from call " << n);
      CheckedBacking backing(kDevice);
      const auto policy = make_policy(name, kConfig, backing);
      backing.refuse_call = n;
      backing.refusals = 1'000'000;
      Program program(*policy);
      program.run();
      refused = backing.refuse_call == 0;
      check_books(*policy, backing);
      program.finish();
      if (refused) REQUIRE(policy->trim(0) == 0);
      backing.refuse_call = -1;
      check_books(*policy, backing);
      go_on(*policy, backing, program);
      // Only what the driver neither enabled nor took back may be left: it is nobody's, and counted.
      REQUIRE(backing.held() == policy->snapshot().live);
    }
  }
}

TEST_CASE("where no page can be moved nothing is lost, and other memory serves") {
  for (const char* name : {"ondemand", "prealloc"}) {
    CheckedBacking backing(kDevice);
    const auto policy = make_policy(name, kConfig, backing);
    backing.refuse_moves = true;
    Program program(*policy);
    program.run();
    check_books(*policy, backing);
    backing.refuse_moves = false;
    go_on(*policy, backing, program);
    REQUIRE(backing.held() == 0);
  }
}

TEST_CASE("whichever host allocation fails, the books stay right and the program goes on") {
  for (const char* name : {"ondemand", "prealloc"}) {
    bool failed = true;
    for (int n = 0; failed; ++n) {
      INFO(name << ", allocation " << n);
      ShelteredBacking backing(kDevice);
      const auto policy = make_policy(name, kConfig, backing);
      Program program(*policy);
      failed = throws_without_memory(n, [&] { program.run(); });
      check_books(*policy, backing.inner);
      go_on(*policy, backing.inner, program);
      REQUIRE(backing.inner.held() == 0);
    }
  }
}
