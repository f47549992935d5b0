// Goes through a trace's events and knows, after each, what is live: for summaries, plots and snapshots.
//
// Threading: none.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

#include "shim/trace/reader.hpp"

namespace tidepool::trace {

struct DeviceState {
  std::uint64_t live = 0;  // bytes that the application asked for and has
  std::uint64_t live_peak = 0;
  std::uint64_t peak_at = 0;  // when it came to that first, ns
  std::uint64_t held = 0;     // device memory of the process
  std::uint64_t held_peak = 0;
  std::uint64_t live_blocks = 0;
  std::uint64_t allocations = 0;
  std::uint64_t frees = 0;
  std::uint64_t refusals = 0;
};

class Replay {
 public:
  // Numbers of own memory are no addresses, so they have a space of their own.
  struct Place {
    bool own = false;
    std::uint64_t address = 0;
    static Place of(const TracedEvent& event) { return {event.family == Family::own, event.address}; }
    friend auto operator<=>(const Place&, const Place&) = default;
  };
  struct Hash {
    std::size_t operator()(const Place& place) const {
      return std::hash<std::uint64_t>()(place.address ^ (place.own ? ~std::uint64_t{0} : 0));
    }
  };
  using Blocks = std::unordered_map<Place, TracedEvent, Hash>;  // by the event that began them

  // What the event ended, if anything: its own block, or one in its place that ended by a way that nobody
  // saw.
  struct Ended {
    bool any = false;
    TracedEvent allocation;
  };
  Ended apply(const TracedEvent& event);

  const Blocks& live() const { return live_; }
  // By device ordinal; those without events are not there.
  const std::map<int, DeviceState>& devices() const { return devices_; }
  const DeviceState& device(int ordinal) const { return devices_.at(ordinal); }

 private:
  Ended end(const Place& place);

  Blocks live_;
  std::map<int, DeviceState> devices_;
};

// The blocks that were live when a device came to its highest mark, `peak_at` of a finished replay.
std::vector<TracedEvent> live_at(const Trace& trace, int device, std::uint64_t moment);

// How many blocks there are in each class of sizes, a power of two, and what they come to.
struct SizeClass {
  std::uint64_t blocks = 0;
  std::uint64_t bytes = 0;
};
std::map<std::uint64_t, SizeClass> by_size(const std::vector<TracedEvent>& blocks);

}  // namespace tidepool::trace
