// For every n: the n-th call to the backing, or the n-th host allocation, fails in the middle of one
// fixed program. The books stay right, and the program can be finished afterwards.
#include <catch2/catch.hpp>
#include <vector>

#include "policies/catalogue.hpp"
#include "tests/unit/policies/checked_backing.hpp"
#include "tests/unit/policies/failing_new.hpp"

using namespace tidepool;
using tidepool::testing::CheckedBacking;

namespace {

// A backing throws nothing: the checked one's own notes are none of the engine's.
struct Sheltered final : Backing {
  Result<Range> reserve(Bytes size) override {
    const testing::WithMemory shelter;
    return inner.reserve(size);
  }
  Status commit(Range range) override {
    const testing::WithMemory shelter;
    return inner.commit(range);
  }
  Status release(Range range) override { return inner.release(range); }
  CheckedBacking inner;
};

// Touches every path: caches, joining, limbo, fences, growth, a dying stream, trim.
class Program {
 public:
  explicit Program(Policy& policy) : policy_(policy) { blocks_.reserve(64); }

  void run() {
    for (Bytes i = 1; i <= 6; ++i) get(i * 700 * kKiB, StreamKey{i % 3});
    get(20 * kMiB, StreamKey{1});
    for (std::size_t i = 0; i < blocks_.size(); ++i) put(i, StreamKey{i % 3});
    get(5 * kMiB, StreamKey{1});
    const Fence fence = policy_.open_fence();
    get(9 * kMiB, StreamKey{2});
    put(blocks_.size() - 1, StreamKey{2});
    policy_.close_fence(fence);
    get(3 * kMiB, kNoStream);
    policy_.forget_stream(StreamKey{2});
    for (std::size_t i = 0; i < blocks_.size(); ++i) put(i, StreamKey{1});
    get(30 * kMiB, StreamKey{1});
    policy_.close_fence(policy_.open_fence());
    policy_.trim(8 * kMiB);
    get(4 * kMiB, StreamKey{2});
  }

  void finish() {
    for (std::size_t i = 0; i < blocks_.size(); ++i) put(i, kNoStream);
    policy_.close_fence(policy_.open_fence());
  }

 private:
  void get(Bytes size, StreamKey stream) {
    if (const auto block = policy_.allocate({size, stream, false})) blocks_.push_back(block.value().address);
  }
  void put(std::size_t i, StreamKey stream) {
    if (blocks_[i] == Address{}) return;
    if (policy_.free(blocks_[i], stream)) blocks_[i] = Address{};
  }

  Policy& policy_;
  std::vector<Address> blocks_;
};

void check_books(Policy& policy, const CheckedBacking& backing) {
  const auto fault = policy.audit();
  INFO(fault.value_or(""));
  REQUIRE_FALSE(fault);
  REQUIRE(policy.snapshot().reserved == backing.held());
}

constexpr PolicyConfig kConfig{kGiB, 64 * kMiB};

}  // namespace

TEST_CASE("whichever call the backing refuses, the books stay right") {
  for (const char* name : {"ondemand", "prealloc"}) {
    bool refused = true;
    for (int n = 0; refused; ++n) {
      INFO(name << ", call " << n);
      CheckedBacking backing;
      const auto policy = make_policy(name, kConfig, backing);
      backing.refuse_call = n;
      Program program(*policy);
      program.run();
      refused = backing.refuse_call < 0;
      backing.refuse_call = -1;
      check_books(*policy, backing);
      program.run();
      program.finish();
      check_books(*policy, backing);
      policy->trim(0);
      REQUIRE(backing.held() == 0);
    }
  }
}

TEST_CASE("whichever host allocation fails, the books stay right") {
  for (const char* name : {"ondemand", "prealloc"}) {
    bool failed = true;
    for (int n = 0; failed; ++n) {
      INFO(name << ", allocation " << n);
      Sheltered backing;
      const auto policy = make_policy(name, kConfig, backing);
      Program program(*policy);
      failed = testing::throws_without_memory(n, [&] { program.run(); });
      check_books(*policy, backing.inner);
      program.finish();
      check_books(*policy, backing.inner);
      policy->trim(0);
      REQUIRE(backing.inner.held() == 0);
    }
  }
}
