// Sizes that were refused of late.
#include "shim/route/refusals.hpp"

#include <algorithm>
#include <utility>

namespace tidepool {

Refusals::Patience Refusals::note(Bytes size, Clock::time_point now) {
  const std::lock_guard hold(lock_);
  if (now - last_ > kPause) count_ = waits_ = 0;
  last_ = now;
  const bool restart = size >= std::exchange(last_size_, size);
  const auto end = sizes_.begin() + static_cast<std::ptrdiff_t>(count_);
  const auto known = std::find_if(sizes_.begin(), end, [&](const Size& one) { return one.size == size; });
  unsigned times = 1;
  if (known != end)
    times = ++known->times;
  else if (count_ < kMostSizes)
    sizes_[count_++] = {size, 1};
  const auto smallest =
      std::min_element(sizes_.begin(), sizes_.begin() + static_cast<std::ptrdiff_t>(count_),
                       [](const Size& one, const Size& other) { return one.size < other.size; });
  Patience patience{Milliseconds(0), smallest->size};
  if (count_ >= kSeries) {
    if (restart && times > 1) patience.wait = note_restart(now);
  } else if (times > kFree) {
    patience.wait = std::min(kLongestWait, kFirstWait * (1 << std::min(waits_++, 5U)));
  }
  return patience;
}

// A loop that waits by itself between two tries is left alone.
Refusals::Milliseconds Refusals::note_restart(Clock::time_point now) {
  if (now - restarts_since_ > kQuick) {
    restarts_since_ = now;
    restarts_ = 0;
  }
  if (++restarts_ <= kFreeRestarts) return Milliseconds(0);
  restarts_ = 0;
  return kLoop;
}

void Refusals::forget(Bytes size) {
  const std::lock_guard hold(lock_);
  const auto end = std::remove_if(sizes_.begin(), sizes_.begin() + static_cast<std::ptrdiff_t>(count_),
                                  [&](const Size& one) { return one.size <= size; });
  count_ = static_cast<std::size_t>(end - sizes_.begin());
  if (count_ == 0) waits_ = 0;
}

}  // namespace tidepool
