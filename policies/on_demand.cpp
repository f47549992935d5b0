// Where memory goes on each call; the order in which an allocation looks for it is take_slowly().
#include "policies/on_demand.hpp"

#include <algorithm>
#include <utility>

namespace tidepool {
namespace {

Range range_of(Entries::const_iterator entry) { return {entry->first, entry->second.size}; }

}  // namespace

Result<Block> OnDemand::allocate(const Request& request) {
  if (request.size == 0) return Failure{Reason::invalid};
  const Shape shape = shape_of(request.size);
  if (shape.size > total_) return Failure{Reason::out_of_memory};
  StreamCache* own = nullptr;
  if (request.stream != kNoStream) {
    own = &streams_[request.stream.value];
    if (const auto entry = own->pop(shape.size)) return hand_out(*entry);
  }
  // The entry comes before the memory, so that a host without memory loses nothing.
  Entries spare;
  auto node = spare.extract(spare.emplace(Address{}, Entry{}).first);
  const auto range = take_slowly(shape, own, request.fence_possible);
  if (!range) return range.failure();
  node.key() = range.value().begin;
  node.mapped().size = range.value().size;
  return hand_out(entries_.insert(std::move(node)).position);
}

Block OnDemand::hand_out(Entries::iterator entry) {
  entry->second.live = true;
  live_ += entry->second.size;
  live_peak_ = std::max(live_peak_, live_);
  return {entry->first, entry->second.size};
}

// The order, by what the recorded traces show: reuse is exhausted, caches taken apart, before memory
// grows. Growing earlier, up to the peak asked for, held up to 6 points more and made no loop steadier.
// A fence stalls the device, so memory grows first while little more is held than was ever asked for
// at once; after that a fence goes first where it is certain to serve the request, and growth where
// not. A caller that cannot wait asks again with fence_possible = false and gets growth.
// When growth fails, whole free commits are traded for fresh addresses, then all hope is in a fence.
Result<Range> OnDemand::take_slowly(Shape shape, StreamCache* own, bool fence_possible) {
  if (const auto range = arena_.take(shape)) return *range;
  if (own) {
    if (const auto range = own->loose.take(shape)) return *range;
    take_apart(*own);
    if (const auto range = own->loose.take(shape)) return *range;
  }
  take_apart_fenced();
  if (const auto range = take_joined(shape, own)) return *range;

  if (fence_possible && !may_grow_first(shape) && fence_would_serve(shape))
    return Failure{Reason::needs_fence};
  auto range = grow(shape, own);
  if (range) return range;
  const Reason reason = range.failure().reason;
  if (reason != Reason::out_of_memory && reason != Reason::limit) return range;
  // Whole free commits elsewhere are worth more as fresh addresses here.
  if (arena_.trim(arena_.reserved() - std::min(arena_.reserved(), shape.size)) > 0) {
    range = grow(shape, own);
    if (range) return range;
  }
  if (fence_possible && unfenced() > 0) return Failure{Reason::needs_fence};
  return range;
}

bool OnDemand::may_grow_first(Shape shape) const {
  const Bytes asked = std::max(live_peak_, live_ + shape.size);
  return arena_.reserved() + shape.size <= asked + std::max(asked / 16, 32 * kMiB);
}

// What is free for everybody and what is free for this stream may adjoin.
std::optional<Range> OnDemand::take_joined(Shape shape, StreamCache* own) {
  const auto range = arena_.take(shape);
  if (range || !own || own->loose.empty()) return range;
  FreeRanges both = arena_.free();
  both.insert(own->loose);
  const auto joined = both.take(shape);
  if (joined) {
    arena_.remove_overlap(*joined);
    own->loose.remove_overlap(*joined);
  }
  return joined;
}

Result<Range> OnDemand::grow(Shape shape, StreamCache* own) {
  FreeRanges usable = arena_.free();
  if (own) usable.insert(own->loose);
  const auto tail = usable.ending_at(arena_.end());
  if (const Status done = arena_.grow(shape, tail ? tail->size : 0); !done) return done.failure();
  return *take_joined(shape, own);
}

Result<Bytes> OnDemand::free(Address address, StreamKey stream) {
  const auto entry = entries_.find(address);
  if (entry == entries_.end() || !entry->second.live) return Failure{Reason::unknown_block};
  const Bytes size = entry->second.size;
  if (stream == kNoStream) {
    limbo_[open_].push_back(range_of(entry));
    in_limbo_ += size;
    entries_.erase(entry);
  } else {
    streams_[stream.value].push(entry, open_);
  }
  live_ -= size;
  return size;
}

Result<Bytes> OnDemand::free_idle(Address address) {
  const auto entry = entries_.find(address);
  if (entry == entries_.end() || !entry->second.live) return Failure{Reason::unknown_block};
  const Range range = range_of(entry);
  arena_.put(range);
  entries_.erase(entry);
  live_ -= range.size;
  return range.size;
}

Fence OnDemand::open_fence() { return {open_++}; }

void OnDemand::close_fence(Fence fence) {
  closed_ = std::max(closed_, std::min(fence.epoch, open_ - 1));
  while (!limbo_.empty() && limbo_.begin()->first <= closed_) {
    auto& ranges = limbo_.begin()->second;
    for (; !ranges.empty(); ranges.pop_back()) {
      arena_.put(ranges.back());
      in_limbo_ -= ranges.back().size;
    }
    limbo_.erase(limbo_.begin());
  }
  for (auto& [key, cache] : streams_) {
    if (cache.loose_freed <= closed_) settle(cache.loose, cache.loose_freed);
  }
}

void OnDemand::forget_stream(StreamKey stream) {
  const auto found = streams_.find(stream.value);
  if (found == streams_.end()) return;
  StreamCache& cache = found->second;
  settle(cache.loose, cache.loose_freed);
  cache.drain(kEver, [this](Entries::iterator entry) {
    settle(range_of(entry), entry->second.freed);
    entries_.erase(entry);
  });
  streams_.erase(found);
}

// Free memory without an owner goes where its last free lets it.
void OnDemand::settle(Range range, Epoch freed) {
  if (freed <= closed_) {
    arena_.put(range);
  } else {
    limbo_[freed].push_back(range);
    in_limbo_ += range.size;
  }
}

void OnDemand::settle(FreeRanges& ranges, Epoch freed) {
  while (const auto range = ranges.first()) {
    settle(*range, freed);
    ranges.remove(*range);
  }
}

void OnDemand::take_apart(StreamCache& own) {
  // Loose ranges that an open fence covers must not be joined with later frees: the fence would then
  // free nothing, and whoever waits for it would have to wait again and again.
  if (own.loose_freed < open_) settle(own.loose, own.loose_freed);
  own.drain(kEver, [&](Entries::iterator entry) {
    if (entry->second.freed <= closed_) {
      arena_.put(range_of(entry));
    } else {
      own.loose.insert(range_of(entry));
      own.loose_freed = std::max(own.loose_freed, entry->second.freed);
    }
    entries_.erase(entry);
  });
}

void OnDemand::take_apart_fenced() {
  for (auto& [key, cache] : streams_) {
    cache.drain(closed_, [this](Entries::iterator entry) {
      arena_.put(range_of(entry));
      entries_.erase(entry);
    });
  }
}

bool OnDemand::fence_would_serve(Shape shape) const {
  if (unfenced() == 0) return false;
  FreeRanges all = fenced();
  for (const auto& [epoch, ranges] : limbo_)
    for (const Range& range : ranges) all.insert(range);
  for (const auto& [key, cache] : streams_) {
    all.insert(cache.loose);
    cache.each([&](Entries::const_iterator entry) {
      if (entry->second.freed > closed_) all.insert(range_of(entry));
    });
  }
  return all.take(shape).has_value();
}

FreeRanges OnDemand::fenced() const {
  FreeRanges ranges = arena_.free();
  for (const auto& [key, cache] : streams_) {
    cache.each([&](Entries::const_iterator entry) {
      if (entry->second.freed <= closed_) ranges.insert(range_of(entry));
    });
  }
  return ranges;
}

Bytes OnDemand::unfenced() const { return arena_.reserved() - live_ - fenced().total(); }

Bytes OnDemand::trim(Bytes keep) {
  // A cache is taken apart only where that gives something back.
  if (arena_.reserved() <= keep || arena_.releasable(fenced()) == 0) return 0;
  take_apart_fenced();
  return arena_.trim(keep);
}

std::optional<Block> OnDemand::find(Address address) const {
  auto entry = entries_.upper_bound(address);
  if (entry == entries_.begin()) return std::nullopt;
  --entry;
  if (!entry->second.live || address >= range_of(entry).end()) return std::nullopt;
  return Block{entry->first, entry->second.size};
}

Snapshot OnDemand::snapshot() const {
  const FreeRanges ranges = fenced();
  Snapshot now;
  now.live = live_;
  now.in_limbo = in_limbo_;
  now.reserved = arena_.reserved();
  now.cached = now.reserved - now.live - now.in_limbo;
  now.reserved_peak = arena_.reserved_peak();
  for (const auto& [begin, size] : ranges.ranges())
    now.largest_free = std::max(now.largest_free, largest_request({begin, size}));
  now.releasable = arena_.releasable(ranges);
  return now;
}

}  // namespace tidepool
