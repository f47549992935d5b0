// XLA's request to a pool that it will never use, answered with addresses alone.
#include "shim/route/reservation.hpp"

namespace tidepool {

std::optional<Address> Reservation::open(Bytes size) {
  const std::lock_guard hold(lock_);
  const Result<Range> range = backing_.reserve(round_up(size, kPage));
  if (!range) return std::nullopt;
  range_ = range.value();
  opener_ = std::this_thread::get_id();
  unbacked_ = range_.size;
  begin_.store(range_.begin.value, std::memory_order_release);
  state_.store(State::pending, std::memory_order_release);
  return range_.begin;
}

Reservation::Closed Reservation::close(Address address) {
  const std::lock_guard hold(lock_);
  if (state_ == State::none || address != range_.begin) return Closed::not_this;
  return state_.exchange(State::none) == State::backed ? Closed::backed : Closed::unused;
}

Status Reservation::back() {
  const std::lock_guard hold(lock_);
  if (state_ != State::pending) return Done{};
  Status status = Done{};
  Bytes there = 0;
  while (there < range_.size && (status = backing_.create(range_.begin + there))) there += kPage;
  if (status) status = backing_.enable(range_);
  if (!status) release_first(there);
  // Without memory the addresses stay as they are: a second try would not find more.
  state_.store(status ? State::backed : State::refused, std::memory_order_release);
  if (status) unbacked_ = 0;
  return status;
}

void Reservation::release() {
  const std::lock_guard hold(lock_);
  release_first(range_.size);
}

void Reservation::release_first(Bytes size) {
  // Refused: the memory stays with the process, counted.
  for (Bytes offset = 0; offset < size; offset += kPage)
    static_cast<void>(backing_.release(range_.begin + offset));
}

}  // namespace tidepool
