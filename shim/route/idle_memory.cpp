// Cached memory that goes back to the device because nobody uses it; what goes because somebody lacks it is
// fence.cpp. Nothing here waits for the device.
#include <algorithm>

#include "shim/route/router.hpp"
#include "shim/route/traced.hpp"

namespace tidepool {
namespace {

// The engine's lock is held for as long as a piece takes.
constexpr Bytes kPiece = 64 * kMiB;

}  // namespace

// What goes back is beyond the share of a preallocated arena.
Bytes Router::cached_beyond_share(Device& device, const Snapshot& held) {
  const Bytes beyond = held.reserved - std::min(held.reserved, device.preallocated());
  return std::min(held.free_pages, beyond);
}

Router::GivenBack Router::give_back_piece(Device& device) {
  using Outcome = GivenBack::Outcome;
  // Of its own mode or not: an open capture is left in peace.
  if (gate_.capturing()) return {Outcome::not_yet};
  {
    const RelaxedCapture relaxed(gate_);
    if (const Bytes size = device.idle_handles.give_back_oldest()) return {Outcome::some, size};
  }
  if (device.native_blocks.bytes() > 0) {
    // The driver's free waits for the device.
    const EventFence::Progress events = ask_for_idle_device(device);
    if (events == EventFence::Progress::pending) return {Outcome::not_yet};
    const RelaxedCapture relaxed(gate_);
    if (events == EventFence::Progress::done)
      if (const Bytes size = device.native_blocks.give_back_oldest()) return {Outcome::some, size};
  }
  if (!device.has_policy()) return {Outcome::nothing};
  const Snapshot held = device.snapshot();
  const Bytes cached = cached_beyond_share(device, held);
  if (cached < Keeper::kWorthwhile) return {Outcome::nothing};
  if (held.releasable < std::min(held.free_pages, kPiece)) {
    const EventFence::Answer events = ask_events(device);
    // Without events for contexts the device would have to be waited for: the program's next allocation
    // does, if it needs to.
    if (events.progress == EventFence::Progress::impossible) return {Outcome::nothing};
    if (events.progress == EventFence::Progress::done) device.policy().close_fence(events.fence);
    return {Outcome::not_yet};
  }
  const Bytes size = device.policy().trim(held.reserved - std::min(kPiece, cached));
  return size == 0 ? GivenBack{Outcome::nothing} : GivenBack{Outcome::some, size};
}

Bytes Router::held_between_uses(Device& device) {
  return device.arena_held().now() + device.idle_handles.bytes() + device.native_blocks.bytes();
}

bool Router::is_worth_keeping(Device& device) {
  const Bytes share = device.has_policy() ? device.preallocated() : 0;
  return held_between_uses(device) >= share + Keeper::kWorthwhile;
}

Keeper::Next Router::look_after(Device& device) {
  const Bytes held = held_between_uses(device);
  if (!is_worth_keeping(device)) return Keeper::Next::nothing;
  const std::uint64_t calls = device.account.allocations() + device.account.frees();
  if (!device.idleness.look(Idleness::Time::clock::now(), calls, held)) return Keeper::Next::wait;
  const GivenBack given = give_back_piece(device);
  if (given.outcome == GivenBack::Outcome::some) {
    device.idleness.gave_back(given.size, held - std::min(held, given.size));
    traced::held(device);
    return Keeper::Next::go_on;
  }
  if (given.outcome == GivenBack::Outcome::nothing) device.idleness.finished();
  return Keeper::Next::wait;
}

Keeper::Next Router::look_after_devices() noexcept {
  Keeper::Next next = Keeper::Next::nothing;
  try {
    for (const auto& device : devices()) next = std::max(next, look_after(*device));
  } catch (const std::bad_alloc&) {
    // The host has no memory for our books: what is cached stays for a while.
    return Keeper::Next::wait;
  }
  return next;
}

}  // namespace tidepool
