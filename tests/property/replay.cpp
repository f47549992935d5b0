// Reads traces as tests/property/traces/README.md describes them, and plays them.
#include "tests/property/replay.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <unordered_map>

namespace tidepool::testing {
namespace {

// A problem of minimalloc's fills 1 MiB, less than a page: made larger, it asks the same of a device.
Bytes scale_of(const std::string& name) { return name.starts_with("minimalloc") ? 4096 : 1; }

}  // namespace

std::vector<Event> read_trace(const std::string& name) {
  std::ifstream file(std::filesystem::path(TRACES) / name);
  std::string line;
  if (!std::getline(file, line)) throw std::runtime_error("cannot read trace " + name);
  const Bytes scale = scale_of(name);
  std::vector<Event> events;
  while (std::getline(file, line)) {
    std::istringstream fields(line);
    std::string time, op, id, size, stream;
    std::getline(fields, time, ',');
    std::getline(fields, op, ',');
    std::getline(fields, id, ',');
    std::getline(fields, size, ',');
    std::getline(fields, stream, ',');
    // Stream 0 of a trace is a stream like any other; a key of 0 is none.
    events.push_back(
        {op == "a", std::stoull(id), std::stoull(size) * scale, StreamKey{std::stoull(stream) + 1}});
  }
  return events;
}

Replayed replay(const std::vector<Event>& events, Policy& policy, const CheckedBacking& backing) {
  Replayed result;
  std::unordered_map<std::uint64_t, std::pair<Address, Bytes>> live;
  Bytes asked = 0;
  int early = 0;
  for (const Event& event : events) {
    if (&event == events.data() + events.size() / 2) early = backing.map_operations();
    if (!event.allocates) {
      const auto found = live.find(event.id);
      if (!policy.free(found->second.first, event.stream)) throw BrokenRule("a live block cannot be freed");
      asked -= found->second.second;
      live.erase(found);
      continue;
    }
    auto block = policy.allocate({event.size, event.stream});
    while (!block && block.failure().reason == Reason::needs_fence) {
      ++result.fences;
      policy.close_fence(policy.open_fence());
      block = policy.allocate({event.size, event.stream});
    }
    if (!block) throw BrokenRule("an allocation of the trace failed");
    live[event.id] = {block.value().address, event.size};
    result.addresses.push_back(block.value().address);
    asked += event.size;
    result.asked_peak = std::max(result.asked_peak, asked);
  }
  result.reserved_peak = policy.snapshot().reserved_peak;
  result.operations = backing.map_operations();
  result.late_operations = result.operations - early;
  return result;
}

}  // namespace tidepool::testing
