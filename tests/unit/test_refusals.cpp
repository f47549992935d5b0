// How long a call that is refused again and again waits, so that a loop writes tens of lines and not
// millions.
#include <catch2/catch.hpp>

#include "shim/route/refusals.hpp"

using namespace tidepool;
using namespace std::chrono_literals;

namespace {

const Refusals::Clock::time_point kBegin{1000s};

std::vector<Bytes> series() {
  std::vector<Bytes> sizes;
  for (Bytes size = 60 * kGiB; size > 256 * kMiB; size = size / 10 * 9) sizes.push_back(size);
  sizes.push_back(256 * kMiB);
  return sizes;
}

}  // namespace

TEST_CASE("the first two refusals of a size are at once, later ones wait ever longer, a second at most") {
  Refusals refusals;
  CHECK(refusals.note(kGiB, kBegin).wait == 0ms);
  CHECK(refusals.note(kGiB, kBegin).wait == 0ms);
  Refusals::Milliseconds last{0};
  for (int i = 0; i < 20; ++i) {
    const auto wait = refusals.note(kGiB, kBegin).wait;
    CHECK(wait >= last);
    CHECK(wait <= 1s);
    last = wait;
  }
  CHECK(last == 1s);
}

TEST_CASE("sizes that a batch-size finder tries are all refused at once") {
  Refusals refusals;
  for (Bytes size = 64 * kGiB; size > kMiB; size /= 2)
    for (int i = 0; i < 2; ++i) CHECK((size < 8 * kGiB || refusals.note(size, kBegin).wait == 0ms));
}

TEST_CASE(
    "a series that comes again and again at once waits as long as its loop would go on, and no longer") {
  Refusals refusals;
  auto now = kBegin;
  std::size_t lines = 0;
  // XLA's loop over ten buffers: until ten seconds are over, then once more.
  for (int buffer = 0; buffer < 10; ++buffer) {
    const auto began = now;
    for (bool last = false;; last = now - began >= 10s) {
      for (Bytes size : series()) {
        const auto patience = refusals.note(size, now);
        CHECK(patience.enough == 256 * kMiB + (lines < series().size() ? patience.enough - 256 * kMiB : 0));
        now += patience.wait;
        ++lines;
      }
      now += 180us;
      if (last) break;
    }
    CHECK(now - began < 10500ms);
  }
  CHECK(lines <= 10 * 6 * series().size());
}

TEST_CASE("a loop that pauses by itself between its series is left alone") {
  Refusals refusals;
  auto now = kBegin;
  for (int i = 0; i < 10; ++i, now += i % 2 ? 10s : 12ms)
    for (Bytes size : series()) CHECK(refusals.note(size, now).wait == 0ms);
}

TEST_CASE("after a pause, or when something was served, it is the first refusal again") {
  Refusals refusals;
  for (int i = 0; i < 5; ++i) refusals.note(kGiB, kBegin);
  CHECK(refusals.note(kGiB, kBegin + 20s).wait == 0ms);
  for (int i = 0; i < 5; ++i) refusals.note(kGiB, kBegin + 20s);
  refusals.forget(kGiB);
  CHECK(refusals.note(kGiB, kBegin + 20s).wait == 0ms);
}
