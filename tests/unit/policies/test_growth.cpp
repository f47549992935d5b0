// How on_demand's memory grows: how much comes from the device, what is moved from elsewhere, what lies
// where then, and what a refusal leaves behind.
#include <vector>

#include "tests/unit/policies/engine.hpp"

using namespace tidepool;
using namespace tidepool::testing;

namespace {

// Four large blocks in a row, of which some are freed, free for everybody at once.
struct Row : Engine {
  std::vector<Address> blocks;
  void make(Bytes size, std::vector<std::size_t> freed) {
    for (int i = 0; i < 4; ++i) blocks.push_back(get(size));
    for (const std::size_t i : freed) put_idle(blocks[i]);
    backing.create_count = backing.move_count = 0;
  }
  Bytes created() const { return static_cast<Bytes>(backing.create_count) * kPage; }
  Bytes moved() const { return static_cast<Bytes>(backing.move_count) * kPage; }
};

}  // namespace

TEST_CASE_METHOD(Row,
                 "pages come from the device while little is held beyond the peak, then from elsewhere") {
  make(32 * kMiB, {0, 2});
  get(64 * kMiB);
  CHECK(created() == 8 * kMiB);
  CHECK(moved() == 56 * kMiB);
}

TEST_CASE_METHOD(Row, "on a full device pages apart from each other make one block") {
  backing.capacity = 128 * kMiB;
  make(32 * kMiB, {0, 2});
  const Address block = get(64 * kMiB);
  CHECK(moved() == 64 * kMiB);
  CHECK(block > blocks[3]);
  CHECK(backing.held() == 128 * kMiB);
}

TEST_CASE_METHOD(Row, "where free pages are not enough the device gives the rest, beyond the slack") {
  make(32 * kMiB, {1});
  put(blocks[0], kNoStream);  // waits for a fence
  get(96 * kMiB, kOne, false);
  CHECK(moved() == 32 * kMiB);
  CHECK(created() == 64 * kMiB);
  CHECK(backing.held() == 192 * kMiB);  // 160 MiB were asked for at once at most
}

TEST_CASE_METHOD(Row, "growth adds only what the free tail lacks, and the block begins in it") {
  make(32 * kMiB, {3});
  CHECK(get(48 * kMiB) == blocks[3]);
  CHECK(created() == 16 * kMiB);
  CHECK(backing.held() == 144 * kMiB);
}

TEST_CASE_METHOD(Row, "the tail's pages are not moved away from under the block that grows from it") {
  backing.capacity = 64 * kMiB;
  make(16 * kMiB, {0, 3});
  CHECK(get(32 * kMiB) == blocks[3]);
  CHECK(moved() == 16 * kMiB);
}

TEST_CASE_METHOD(Row, "a small block begins in the free tail of small ones and goes on in fresh memory") {
  const Address first = get(kMiB);
  REQUIRE(backing.held() == kPage);
  CHECK(get(3 * kMiB) == first + kMiB);
  CHECK(backing.held() == 2 * kPage);
}

TEST_CASE_METHOD(Row, "a block that fresh memory holds alone leaves the tail before it to others") {
  const Address first = get(kMiB);
  CHECK(get(2 * kMiB) == first + kPage);
  CHECK(get(kMiB) == first + kMiB);
  CHECK(backing.held() == 2 * kPage);
}

TEST_CASE_METHOD(Row, "a tail that waits for a fence is left alone") {
  make(32 * kMiB, {});
  put(blocks[3], kNoStream);
  CHECK(get(34 * kMiB, kOne, false) > blocks[3]);
  CHECK(policy.snapshot().in_limbo == 32 * kMiB);
}

TEST_CASE_METHOD(Row,
                 "a tail that the stream itself freed is grown from, and what is left of it stays its own") {
  make(32 * kMiB, {});
  put(blocks[3]);
  const Address block = get(33 * kMiB);
  CHECK(block == blocks[3]);
  CHECK(created() == 2 * kMiB);
  CHECK(policy.snapshot().largest_free == 0);
  CHECK(get(kMiB) == block + 33 * kMiB);
}

TEST_CASE_METHOD(Row,
                 "a tail without an aligned byte stays free as it was beside the large block behind it") {
  const Address block = get(kLarge + kGranule);
  CHECK(get(kLarge) == block + (kLarge + kPage));
  CHECK(get(kPage - kGranule) == block + (kLarge + kGranule));
}

TEST_CASE_METHOD(Row, "packed memory grows by a little more than is missing, from 2 to 16 MiB") {
  get(640 * kMiB);
  get(kMiB);
  CHECK(backing.held() == 650 * kMiB);
  get(4 * kGiB);
  const Bytes held = backing.held();
  while (backing.held() == held) get(kMiB);
  CHECK(backing.held() == held + 16 * kMiB);
}

TEST_CASE_METHOD(Row, "large memory grows by what is missing and no more") {
  get(640 * kMiB);
  get(20 * kMiB);
  CHECK(backing.held() == 660 * kMiB);
}

TEST_CASE_METHOD(Row, "more than is missing is not grown where the slack is used up") {
  put(get(640 * kMiB), kNoStream);
  get(16 * kMiB, kTwo);  // all of the slack
  CHECK(refusal(kMiB, kTwo) == Reason::needs_fence);
  get(kMiB, kTwo, false);
  CHECK(backing.held() == 658 * kMiB);
}

TEST_CASE_METHOD(Row, "more than is missing is not moved") {
  get(kGiB);
  make(8 * kMiB, {0, 2});
  backing.capacity = backing.held();
  get(12 * kMiB);
  CHECK(moved() == 12 * kMiB);
}

TEST_CASE_METHOD(Row, "pages are moved from the smallest free piece first, from its end") {
  const Address smaller = get(20 * kMiB);
  get(kLarge);
  const Address larger = get(40 * kMiB);
  get(kLarge);
  put_idle(larger);
  put_idle(smaller);
  backing.capacity = backing.held();
  get(50 * kMiB);
  CHECK(moved() == 50 * kMiB);
  for (Bytes at = 0; at < 20 * kMiB; at += kPage) CHECK_FALSE(backing.usable({smaller + at, kPage}));
  CHECK(backing.usable({larger, 10 * kMiB}));
  CHECK_FALSE(backing.usable({larger + 10 * kMiB, kPage}));
  CHECK(get(10 * kMiB) == larger);
}

TEST_CASE_METHOD(Row, "pages of small blocks are moved too, those of large ones first") {
  backing.capacity = 64 * kMiB;
  const Address small = get(12 * kMiB);
  get(2 * kMiB);
  const Address large = get(20 * kMiB);
  get(30 * kMiB);
  put_idle(small);
  put_idle(large);
  const Address block = get(24 * kMiB);
  CHECK(backing.move_count == 12);
  CHECK_FALSE(backing.usable({large, kPage}));
  CHECK(backing.usable({small, 8 * kMiB}));
  CHECK_FALSE(backing.usable({small + 8 * kMiB, kPage}));
  CHECK(block > large);
}

TEST_CASE_METHOD(Row, "no page is moved for a request that fails all the same") {
  backing.capacity = 128 * kMiB;
  make(32 * kMiB, {0, 2});
  CHECK(refusal(66 * kMiB) == Reason::out_of_memory);
  put(blocks[1], kNoStream);
  CHECK(refusal(98 * kMiB) == Reason::needs_fence);
  CHECK(moved() == 0);
  fence();
  CHECK(get(96 * kMiB) == blocks[0]);
}

TEST_CASE_METHOD(Row, "what the device gave before it ended stays free, and a smaller request has it") {
  backing.capacity = 40 * kMiB;
  CHECK(refusal(64 * kMiB) == Reason::out_of_memory);
  CHECK(policy.snapshot().cached == backing.held());
  get(40 * kMiB);
  CHECK(backing.held() == 40 * kMiB);
}

TEST_CASE_METHOD(Row, "a failed request leaves the free tail to whoever had it") {
  backing.capacity = 64 * kMiB;
  make(16 * kMiB, {3});
  CHECK(refusal(48 * kMiB) == Reason::out_of_memory);
  CHECK(get(kLarge, kTwo) == blocks[3]);
}

TEST_CASE_METHOD(Row, "where pages cannot be moved the device is asked, and the pages stay free") {
  make(32 * kMiB, {0, 2});
  backing.refuse_moves = true;
  get(64 * kMiB);
  CHECK(created() == 64 * kMiB);
  backing.refuse_moves = false;
  CHECK(get(32 * kMiB) == blocks[0]);
  CHECK(get(32 * kMiB) == blocks[2]);
}

TEST_CASE_METHOD(Row,
                 "memory that the driver does not enable is handed back, the request fails with its reason") {
  make(32 * kMiB, {3});
  const Bytes held = backing.held();
  backing.refuse_call = 8;  // creates, then enables
  CHECK(refusal(48 * kMiB) == Reason::driver);
  CHECK(backing.held() == held);
  CHECK(get(32 * kMiB) == blocks[3]);
}

TEST_CASE_METHOD(Row, "pages that were moved and cannot be enabled are handed back, not lost") {
  backing.capacity = 128 * kMiB;
  make(32 * kMiB, {0, 2});
  backing.refuse_call = 33;  // a create that the device's end refuses, 32 moves
  CHECK(refusal(64 * kMiB) == Reason::driver);
  CHECK(backing.held() == 64 * kMiB);
  get(64 * kMiB);
}

TEST_CASE_METHOD(Row, "trim hands back the smallest free pieces first and no page more than it must") {
  make(32 * kMiB, {0, 2});
  put_idle(get(kLarge));
  CHECK(policy.trim(backing.held() - 3 * kMiB) == 2 * kPage);
  CHECK(policy.trim(0) == 60 * kMiB);
  CHECK(backing.held() == 64 * kMiB);
}
