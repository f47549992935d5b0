// Reading a trace, and telling a damaged one.
#include "shim/trace/reader.hpp"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>
#include <set>
#include <stdexcept>
#include <string_view>

namespace tidepool::trace {
namespace {

template <std::size_t size>
std::string text_in(const std::array<char, size>& field) {
  return {field.data(), std::find(field.begin(), field.end(), '\0')};
}

[[noreturn]] void damaged(const std::string& what) { throw std::runtime_error("is damaged: " + what); }

void check(const Header& header, std::uint64_t file_size) {
  if (header.magic != kMagic) throw std::runtime_error("is no trace of tidepool");
  if (header.byte_order != kByteOrder) throw std::runtime_error("is of a machine with another byte order");
  if (header.version != kVersion)
    throw std::runtime_error("is of version " + std::to_string(header.version) +
                             " of the format; this tidepool reads version " + std::to_string(kVersion));
  if (header.record_size != sizeof(Record) || header.chunk_size != kChunkSize || header.capacity == 0 ||
      header.device_count > kMostDevices || header.command_size > header.command.size())
    damaged("its header contradicts itself");
  if (file_size < header.extended || file_size < kHeaderSize)
    throw std::runtime_error("is cut off: " + std::to_string(header.extended) + " bytes were written, " +
                             std::to_string(file_size) + " are there");
}

void take_header(const Header& header, Trace& trace) {
  trace.pid = header.pid;
  trace.mode = text_in(header.mode);
  trace.wall_base = header.wall_base;
  trace.ended = header.ended;
  trace.failure = static_cast<int>(header.failure);
  for (const char *at = header.command.data(), *end = at + header.command_size; at < end;) {
    trace.command.emplace_back(at, std::find(at, end, '\0'));
    at += trace.command.back().size() + 1;
  }
  for (std::uint32_t i = 0; i < header.device_count; ++i) {
    const DeviceEntry& device = header.devices[i];
    trace.devices.push_back({device.ordinal, text_in(device.uuid), text_in(device.name), device.total});
  }
  const std::uint64_t replaced = header.claimed - std::min(header.claimed, header.capacity);
  trace.missing = replaced * std::tuple_size_v<decltype(Chunk::records)>;
}

TracedEvent joined(const Record& record, const StateRecord& state, std::uint32_t thread) {
  return {.time = record.time,
          .address = record.address,
          .size = record.size,
          .stream = state.stream,
          .owner = state.owner,
          .held = state.held,
          .thread = thread,
          .action = record.action,
          .family = record.family,
          .source = record.source,
          .device = record.device};
}

void take_chunk(const Chunk& chunk, std::uint64_t number, std::vector<TracedEvent>& events) {
  const auto mark = static_cast<std::uint32_t>(chunk.claim);
  const auto written = [&](const Record& record) { return record.mark == mark; };
  const auto end = std::find_if_not(chunk.records.begin(), chunk.records.end(), written);
  const std::string name = "chunk " + std::to_string(number);
  if (std::any_of(end, chunk.records.end(), written)) damaged(name + " has a hole");
  StateRecord state;
  bool state_known = false;
  for (auto record = chunk.records.begin(); record != end; ++record) {
    if (record->action == Action::state) {
      state = std::bit_cast<StateRecord>(*record);
      state_known = true;
      continue;
    }
    if (!state_known || record->action < Action::state || record->action > kLastAction ||
        record->family > kLastFamily || record->source > kLastSource || record->device != state.device)
      damaged(name + " has a record that was never written");
    events.push_back(joined(*record, state, chunk.thread));
  }
}

// A block that is freed and given out within one tick of the clock was freed first.
bool happened_before(const TracedEvent& one, const TracedEvent& other) {
  if (one.time != other.time) return one.time < other.time;
  return one.action == Action::free && other.action == Action::allocate;
}

// Blocks that were made in the part that is missing, and ended after it: they were live at its end. Those
// that never ended are not known.
void add_blocks_from_before(std::vector<TracedEvent>& events) {
  std::set<std::pair<bool, std::uint64_t>> known;
  std::vector<TracedEvent> from_before;
  for (const TracedEvent& event : events) {
    const std::pair place(event.family == Family::own, event.address);
    if (event.action == Action::allocate) known.insert(place);
    if (event.action != Action::free || !known.insert(place).second) continue;
    from_before.push_back(event);
    from_before.back().time = events.front().time;
    from_before.back().action = Action::allocate;
    from_before.back().held = events.front().held;
  }
  events.insert(events.begin(), from_before.begin(), from_before.end());
}

}  // namespace

Trace read(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  const auto size = file.tellg();
  if (!file || size < 0) throw std::runtime_error(std::string("cannot be read: ") + std::strerror(errno));
  const auto header = std::make_unique<Header>();
  file.seekg(0);
  file.read(reinterpret_cast<char*>(header.get()), sizeof(Header));
  const auto got = static_cast<std::size_t>(std::max<std::streamsize>(file.gcount(), 0));
  if (got < sizeof kMagic) throw std::runtime_error("is no trace of tidepool");
  if (got < sizeof(Header) && header->magic == kMagic) throw std::runtime_error("is cut off");
  check(*header, static_cast<std::uint64_t>(size));

  Trace trace;
  take_header(*header, trace);
  file.seekg(kHeaderSize);
  const auto chunk = std::make_unique<Chunk>();
  for (std::uint64_t number = 0; file.read(reinterpret_cast<char*>(chunk.get()), sizeof(Chunk)); ++number) {
    if (chunk->claim == 0) continue;
    if (chunk->claim > header->claimed && trace.ended != 0) damaged("it has chunks that nobody took");
    take_chunk(*chunk, number, trace.events);
  }
  std::stable_sort(trace.events.begin(), trace.events.end(), happened_before);
  if (trace.missing > 0) add_blocks_from_before(trace.events);
  return trace;
}

}  // namespace tidepool::trace
