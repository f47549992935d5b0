// What is live after each event.
#include "shim/trace/replay.hpp"

#include <algorithm>
#include <bit>

namespace tidepool::trace {

Replay::Ended Replay::end(const Place& place) {
  const auto found = live_.find(place);
  if (found == live_.end()) return {};
  const Ended ended{true, found->second};
  live_.erase(found);
  DeviceState& state = devices_[ended.allocation.device];
  state.live -= ended.allocation.size;
  --state.live_blocks;
  return ended;
}

Replay::Ended Replay::apply(const TracedEvent& event) {
  DeviceState& state = devices_[event.device];
  state.held = event.held;
  state.held_peak = std::max(state.held_peak, event.held);
  Ended ended;
  switch (event.action) {
    case Action::allocate:
      ended = end(Place::of(event));
      live_.emplace(Place::of(event), event);
      ++state.allocations;
      ++state.live_blocks;
      state.live += event.size;
      if (state.live > state.live_peak) {
        state.live_peak = state.live;
        state.peak_at = event.time;
      }
      break;
    case Action::free:
      ended = end(Place::of(event));
      ++state.frees;
      break;
    case Action::refuse: ++state.refusals; break;
    case Action::state:
    case Action::grow:
    case Action::shrink:
    case Action::hold: break;
  }
  return ended;
}

// The event that made the peak is the last of its moment that counts.
std::vector<TracedEvent> live_at(const Trace& trace, int device, std::uint64_t moment) {
  Replay replay;
  std::uint64_t most = 0;
  std::vector<TracedEvent> blocks;
  for (const TracedEvent& event : trace.events) {
    if (event.time > moment) break;
    replay.apply(event);
    if (event.time < moment || event.device != device) continue;
    if (replay.device(device).live < most) continue;
    most = replay.device(device).live;
    blocks.clear();
    for (const auto& [place, block] : replay.live())
      if (block.device == device) blocks.push_back(block);
  }
  return blocks;
}

std::map<std::uint64_t, SizeClass> by_size(const std::vector<TracedEvent>& blocks) {
  std::map<std::uint64_t, SizeClass> classes;
  for (const TracedEvent& block : blocks) {
    SizeClass& one = classes[std::bit_ceil(std::max<std::uint64_t>(block.size, 1))];
    ++one.blocks;
    one.bytes += block.size;
  }
  return classes;
}

}  // namespace tidepool::trace
