// A trace as the snapshot that torch.cuda.memory._snapshot() gives. Segments are what is held at the end:
// runs of the arena's pages, and each block of the driver's own. Their blocks tile them, which readers rely
// on.
#include <algorithm>
#include <set>

#include "policies/units.hpp"
#include "shim/cli/trace/formats.hpp"
#include "shim/cli/trace/pickle.hpp"
#include "shim/trace/replay.hpp"

namespace tidepool::cli {
namespace {

using trace::TracedEvent;

struct Segment {
  int device = 0;
  std::uint64_t begin = 0;
  std::uint64_t size = 0;
  bool of_arena = false;
  std::vector<TracedEvent> blocks;
};

void write_frames(Pickle& pickle) { pickle.text("frames").no_list(); }

void write_block(Pickle& pickle, std::uint64_t begin, std::uint64_t size, std::uint64_t requested,
                 bool live) {
  pickle.begin_dict().entry("address", begin).entry("size", size).entry("requested_size", requested);
  pickle.entry("state", live ? "active_allocated" : "inactive");
  write_frames(pickle);
  pickle.end_dict();
}

// What lies between two blocks is free, but for the remainder of the granule.
void write_blocks(Pickle& pickle, const Segment& segment) {
  std::uint64_t at = segment.begin;
  const std::uint64_t end = segment.begin + segment.size;
  for (std::size_t i = 0; i < segment.blocks.size(); ++i) {
    const TracedEvent& block = segment.blocks[i];
    if (block.address > at) write_block(pickle, at, block.address - at, 0, false);
    const std::uint64_t next = i + 1 < segment.blocks.size() ? segment.blocks[i + 1].address : end;
    const std::uint64_t size =
        std::min(segment.of_arena ? round_up(block.size, kGranule) : block.size, next - block.address);
    write_block(pickle, block.address, size, block.size, true);
    at = block.address + size;
  }
  if (at < end) write_block(pickle, at, end - at, 0, false);
}

void write_segment(Pickle& pickle, const Segment& segment) {
  std::uint64_t live = 0;
  for (const TracedEvent& block : segment.blocks) live += block.size;
  pickle.begin_dict().entry("device", static_cast<std::uint64_t>(segment.device));
  pickle.entry("address", segment.begin).entry("total_size", segment.size);
  pickle.entry("allocated_size", live).entry("active_size", live).entry("requested_size", live);
  pickle.entry("stream", segment.blocks.empty() ? 0 : segment.blocks.front().stream);
  pickle.entry("segment_type", segment.size >= kMiB ? "large" : "small");
  pickle.text("segment_pool_id").pair(0, 0);
  pickle.text("is_expandable").boolean(segment.of_arena);
  write_frames(pickle);
  pickle.text("blocks").begin_list();
  write_blocks(pickle, segment);
  pickle.end_list().end_dict();
}

class Segments {
 public:
  void page(const TracedEvent& event) {
    const std::pair page{static_cast<int>(event.device), event.address};
    if (event.action == trace::Action::grow)
      pages_.insert(page);
    else
      pages_.erase(page);
  }
  std::vector<Segment> with(const trace::Replay::Blocks& live) const {
    std::vector<Segment> found;
    for (const auto& [device, page] : pages_) {
      if (!found.empty() && found.back().device == device && found.back().begin + found.back().size == page)
        found.back().size += kPage;
      else
        found.push_back({device, page, kPage, true, {}});
    }
    std::vector<TracedEvent> blocks;
    for (const auto& [place, block] : live)
      if (!place.own && block.size > 0) blocks.push_back(block);
    std::sort(blocks.begin(), blocks.end(),
              [](const TracedEvent& one, const TracedEvent& other) { return one.address < other.address; });
    const std::size_t runs = found.size();
    for (const TracedEvent& block : blocks) {
      const auto home = std::find_if(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(runs),
                                     [&](const Segment& segment) { return holds(segment, block); });
      if (home != found.begin() + static_cast<std::ptrdiff_t>(runs))
        home->blocks.push_back(block);
      else
        found.push_back({block.device, block.address, block.size, false, {block}});
    }
    return found;
  }

 private:
  static bool holds(const Segment& segment, const TracedEvent& block) {
    return segment.device == block.device && segment.begin <= block.address &&
           block.address + block.size <= segment.begin + segment.size;
  }

  std::set<std::pair<int, std::uint64_t>> pages_;
};

void write_action(Pickle& pickle, const trace::Trace& trace, const TracedEvent& event, const char* action,
                  std::uint64_t size) {
  pickle.begin_dict().entry("action", action).entry("addr", event.address).entry("size", size);
  pickle.entry("stream", event.stream).entry("time_us", (trace.wall_base + event.time) / 1000);
  write_frames(pickle);
  pickle.end_dict();
}

void write_refusal(Pickle& pickle, const trace::Trace& trace, const TracedEvent& event) {
  std::uint64_t total = 0;
  for (const trace::TracedDevice& device : trace.devices)
    if (device.ordinal == event.device) total = device.total;
  pickle.begin_dict().entry("action", "oom").entry("device_free", total - std::min(total, event.held));
  pickle.entry("size", event.size).entry("stream", event.stream);
  pickle.entry("time_us", (trace.wall_base + event.time) / 1000);
  write_frames(pickle);
  pickle.end_dict();
}

void write_device_trace(Pickle& pickle, const trace::Trace& trace, int device) {
  trace::Replay replay;
  pickle.begin_list();
  for (const TracedEvent& event : trace.events) {
    const trace::Replay::Ended ended = replay.apply(event);
    if (event.device != device || event.family == trace::Family::own) continue;
    switch (event.action) {
      case trace::Action::allocate: write_action(pickle, trace, event, "alloc", event.size); break;
      case trace::Action::free:
        if (!ended.any) break;
        write_action(pickle, trace, event, "free_requested", ended.allocation.size);
        write_action(pickle, trace, event, "free_completed", ended.allocation.size);
        break;
      case trace::Action::grow: write_action(pickle, trace, event, "segment_map", event.size); break;
      case trace::Action::shrink: write_action(pickle, trace, event, "segment_unmap", event.size); break;
      case trace::Action::refuse: write_refusal(pickle, trace, event); break;
      case trace::Action::hold:
      case trace::Action::state: break;
    }
  }
  pickle.end_list();
}

}  // namespace

void write_torch_snapshot(const trace::Trace& trace, std::ostream& out) {
  trace::Replay replay;
  Segments segments;
  int devices = 0;
  for (const TracedEvent& event : trace.events) {
    replay.apply(event);
    devices = std::max(devices, event.device + 1);
    if (event.action == trace::Action::grow || event.action == trace::Action::shrink) segments.page(event);
  }
  Pickle pickle(out);
  pickle.begin_dict().text("segments").begin_list();
  for (const Segment& segment : segments.with(replay.live())) write_segment(pickle, segment);
  pickle.end_list().text("device_traces").begin_list();
  for (int device = 0; device < devices; ++device) write_device_trace(pickle, trace, device);
  pickle.end_list().text("allocator_settings").begin_dict().entry("PYTORCH_CUDA_ALLOC_CONF", "").end_dict();
  pickle.text("external_annotations").no_list().end_dict();
  pickle.finish();
}

}  // namespace tidepool::cli
