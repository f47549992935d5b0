// When memory that is cached may go.
#include "shim/route/idleness.hpp"

#include <algorithm>

namespace tidepool {
namespace {

// An absence of so many patiences is worth the growth that follows it: the memory was of use to others for
// most of the time.
constexpr int kWorth = 4;

}  // namespace

bool Idleness::look(Time now, std::uint64_t calls, Bytes held) {
  if (calls == calls_) return !finished_ && now - last_call_ >= patience_;
  if (given_back_ > 0 && absence_ == Duration{}) absence_ = now - last_call_;
  calls_ = calls;
  last_call_ = now;
  finished_ = false;
  judge(held);
  return false;
}

void Idleness::gave_back(Bytes size, Bytes held) {
  if (absence_ != Duration{}) {  // it came back and needed little of what went before
    absence_ = {};
    given_back_ = 0;
  }
  given_back_ += size;
  left_ = held;
}

// Did the program, once back, take again what it had given?
void Idleness::judge(Bytes held) {
  if (absence_ == Duration{} || held < left_ + given_back_ / 2) return;
  patience_ =
      absence_ < kWorth * patience_ ? std::min(2 * patience_, kLongest) : std::max(patience_ / 2, kShortest);
  given_back_ = 0;
  absence_ = {};
}

}  // namespace tidepool
