// The ways of a block in and out, and of freed memory to its place. Where a request that no cache serves
// finds memory is search.cpp, how the arena grows growth.cpp.
#include "policies/on_demand.hpp"

#include <algorithm>

namespace tidepool {
namespace {

Block block_of(const Piece& piece) {
  const auto& label = piece.label;
  return {piece.address(), piece.size, {piece.size - label.slack, label.owner, label.number, label.tag}};
}

}  // namespace

OnDemand::OnDemand(const PolicyConfig& config, Backing& backing)
    : total_(config.total), arena_(backing, config.total), everybody_(streams_[kEverybody]) {}

// The stream's place, made at its first call. Everybody's, where there are too many streams: what is freed
// there waits for a fence.
OnDemand::Stream& OnDemand::stream_of(StreamKey key) {
  if (key == kNoStream) return everybody_;
  if (Stream* known = known_.find(key.value)) return *known;
  const std::lock_guard hold(lock_);
  if (Stream* known = known_.find(key.value)) return *known;
  known_.prepare(1);
  Stream* stream = nullptr;
  if (unused_.empty()) {
    unused_.reserve(streams_.size() + 1);
    stream = streams_.add();
    if (stream == nullptr) return everybody_;
  } else {
    stream = &streams_[unused_.back()];
    unused_.pop_back();
  }
  stream->cache.serve(key.value);
  known_.insert(stream);
  return *stream;
}

StreamPlace* OnDemand::place_of(StreamKey key) {
  Stream& stream = stream_of(key);
  return &stream == &everybody_ ? nullptr : &stream;
}

// Short, and all else out of line: this is the way of nearly every call.
Result<Block> OnDemand::allocate(const Request& request) {
  const Shape shape = shape_of(request.size);
  if (request.size == 0 || shape.size > total_ || request.place == nullptr)
    return allocate_anywhere(request, shape);
  Stream& own = *static_cast<Stream*>(request.place);
  own.cache.lock.lock();
  // Another key: it was forgotten meanwhile, and its memory is not this stream's.
  const bool known = own.key() == request.stream.value;
  Piece* piece = known ? own.cache.pop(shape.size) : nullptr;
  if (piece == nullptr) {
    own.cache.lock.unlock();
    return known ? allocate_slowly(request, shape, own) : allocate_anywhere(request, shape);
  }
  bool settle_due = false;
  const Block block = hand_out(piece, request, own, settle_due);
  own.cache.lock.unlock();
  if (settle_due) settle_meters();
  return block;
}

Result<Block> OnDemand::allocate_anywhere(const Request& request, Shape shape) {
  if (request.size == 0) return Failure{Reason::invalid};
  if (shape.size > total_) return Failure{Reason::out_of_memory};
  Request found = request;
  found.place = &stream_of(request.stream);
  // A stream that has no place of its own, since there are too many, is served as no stream at all.
  if (found.place == &everybody_) found.stream = kNoStream;
  return allocate(found);
}

// Requires: the lock of the stream's cache.
Block OnDemand::hand_out(Piece* piece, const Request& request, Stream& own, bool& settle_due) {
  const std::uint64_t number = (std::uint64_t{own.index} << 40) | ++own.last_number;
  piece->label = {request.owner, number, static_cast<std::uint32_t>(piece->size - request.size), request.tag};
  piece->grouped = request.grouped;
  piece->stream.store(own.index, std::memory_order_relaxed);
  settle_due = own.requested[0].add(request.size);
  if (request.grouped) settle_due |= own.requested[1].add(request.size);
  const Block block = block_of(*piece);
  piece->become(State::live);
  return block;
}

Result<Block> OnDemand::allocate_slowly(const Request& request, Shape shape, Stream& own) {
  Block block;
  bool settle_due = false;
  {
    const std::lock_guard hold(lock_);
    // The stream died under the call; or there are too many, and this one shares everybody's place.
    if (own.key() != request.stream.value && &own != &everybody_) return Failure{Reason::invalid};
    arena_.prepare();
    blocks_.prepare(1);
    const Bytes peak = live_peak_;
    const Result<Piece*> piece = take_slowly({shape, own, request.fence_possible});
    if (!piece) {
      live_peak_ = peak;  // a program that tries how much it can get has not got it
      return piece.failure();
    }
    const std::lock_guard hold_cache(own.cache.lock);
    block = hand_out(piece.value(), request, own, settle_due);
    blocks_.insert(piece.value());
  }
  if (settle_due) settle_meters();
  return block;
}

// All locks at once, in the order of the streams: nobody else holds two.
void OnDemand::settle_meters() {
  const std::lock_guard hold(lock_);
  streams_.each([](Stream& stream) { stream.cache.lock.lock(); });
  for (const std::size_t sum : {0, 1})
    requested_[sum].settle([&](auto visit) {
      streams_.each([&](Stream& stream) { visit(stream.requested[sum]); });
      if (sum == 0) visit(outside_);
    });
  streams_.each([](Stream& stream) { stream.cache.lock.unlock(); });
}

void OnDemand::count_outside(std::int64_t bytes) {
  bool settle_due = false;
  {
    const std::lock_guard hold(lock_);
    if (bytes > 0)
      settle_due = outside_.add(static_cast<Bytes>(bytes));
    else
      outside_.subtract(static_cast<Bytes>(-bytes));
  }
  if (settle_due) settle_meters();
}

void OnDemand::reset_grouped_peak() {
  {
    const std::lock_guard hold(lock_);
    requested_[1].reset_peak();
  }
  settle_meters();
}

Result<Block> OnDemand::free(Address address, StreamKey stream, StreamPlace* place) {
  Stream* by = nullptr;
  if (stream != kNoStream) {
    by = place != nullptr ? static_cast<Stream*>(place) : &stream_of(stream);
    if (by->key() != stream.value) by = nullptr;  // forgotten meanwhile, or one of too many
  }
  return free_by(address, by, stream, false);
}

Result<Block> OnDemand::free_idle(Address address) { return free_by(address, &everybody_, kNoStream, true); }

// Nearly every block goes back to the stream that it came from, and is kept there.
Result<Block> OnDemand::free_by(Address address, Stream* by, StreamKey stream, bool idle) {
  Piece* piece = address.value == 0 ? nullptr : blocks_.find(address.value);
  const Epoch freed = idle ? 0 : open_.load(std::memory_order_acquire);
  while (piece != nullptr) {
    // By the lock of the stream that it was allocated on: of two frees of one block one finds it live.
    Stream& home = home_of(piece);
    home.cache.lock.lock();
    if (!piece->is_live_at(address) || &home_of(piece) != &home) {
      const bool again = piece->is_live_at(address);  // freed and handed out, between the two
      home.cache.lock.unlock();
      if (again) continue;
      break;
    }
    const Block block = block_of(*piece);
    home.requested[0].subtract(block.label.requested);
    if (piece->grouped) home.requested[1].subtract(block.label.requested);
    const bool kept = &home == by && home.key() == stream.value && home.cache.push(piece, freed, home.index);
    if (!kept) piece->become(State::taken);
    home.cache.lock.unlock();
    if (!kept) put_away(piece, &home == by ? nullptr : by, by, stream, idle);
    return block;
  }
  return Failure{Reason::unknown_block};
}

// A block that its own stream does not keep: another that freed it may, else it is free memory.
void OnDemand::put_away(Piece* piece, Stream* keeper, Stream* by, StreamKey stream, bool idle) {
  if (keeper != nullptr) {
    const Epoch freed = idle ? 0 : open_.load(std::memory_order_acquire);
    const std::lock_guard hold(keeper->cache.lock);
    if (keeper->key() == stream.value && keeper->cache.push(piece, freed, keeper->index)) return;
  }
  const std::lock_guard hold(lock_);
  blocks_.erase(piece);
  if (idle)
    put(piece, kEverybody, 0);
  else if (by == nullptr || by->key() != stream.value)
    put_in_limbo(piece, open_);
  else
    put(piece, by->index, open_);
}

// Free memory to those who may use it, joined with its neighbours of the same kind.
void OnDemand::put(Piece* piece, Index owner, Epoch freed) {
  piece->stream.store(owner, std::memory_order_relaxed);
  piece->idle = {nullptr, nullptr, freed};
  // Memory that an open fence covers is not joined with what was freed later: the fence would then free
  // nothing, and whoever waits for it would have to wait again and again.
  const auto alike = [&](const Piece* other) {
    return other != nullptr && other->state() == State::free && other->stream == owner &&
           other->idle.freed == freed;
  };
  if (alike(piece->next)) {
    index_remove(piece->next);
    arena_.merge_with_next(piece);
  }
  if (alike(piece->previous)) {
    piece = piece->previous;
    index_remove(piece);
    arena_.merge_with_next(piece);
  }
  piece->become(State::free);
  streams_[owner].free[piece->large].insert(piece);
  ++streams_[owner].changes;
  streams_[owner].earliest = std::min(streams_[owner].earliest, freed);
}

void OnDemand::put_in_limbo(Piece* piece, Epoch freed) {
  piece->idle = {nullptr, nullptr, freed};
  piece->become(State::limbo);
  in_limbo_ += piece->size;
  if (limbo_ == nullptr || limbo_->idle.freed > freed) {
    piece->idle.left = limbo_;
    limbo_ = piece;
    if (limbo_end_ == nullptr) limbo_end_ = piece;
    return;
  }
  Piece* before = limbo_end_;
  if (before->idle.freed > freed)
    for (before = limbo_; before->idle.left->idle.freed <= freed;) before = before->idle.left;
  piece->idle.left = before->idle.left;
  before->idle.left = piece;
  if (before == limbo_end_) limbo_end_ = piece;
}

// Free memory without an owner goes where its last free lets it.
void OnDemand::settle(Piece* piece, Epoch freed) {
  if (freed <= closed_)
    put(piece, kEverybody, 0);
  else
    put_in_limbo(piece, freed);
}

void OnDemand::drain_cache(Stream& stream, Epoch last) {
  const std::lock_guard hold(stream.cache.lock);
  stream.cache.drain(last, [&](Piece* piece) {
    blocks_.erase(piece);
    const Epoch freed = piece->idle.freed;
    if (freed <= closed_)
      put(piece, kEverybody, 0);
    else
      put(piece, stream.index, freed);
  });
}

// What streams freed before a closed fence is everybody's.
void OnDemand::reclaim_fenced() {
  streams_.each([this](Stream& stream) { reclaim_fenced(stream); });
}

void OnDemand::reclaim_fenced(Stream& stream) {
  drain_cache(stream, closed_);
  if (stream.index == kEverybody || stream.earliest > closed_) return;
  stream.earliest = kEver;
  for (FreeIndex& index : stream.free)
    index.drain([&](Piece* piece) {
      const bool fenced = piece->idle.freed <= closed_;
      put(piece, fenced ? kEverybody : stream.index, fenced ? 0 : piece->idle.freed);
    });
}

// Without the lock: the caller may hold one that growth needs.
Fence OnDemand::open_fence() { return {open_.fetch_add(1, std::memory_order_acq_rel)}; }

void OnDemand::close_fence(Fence fence) {
  const std::lock_guard hold(lock_);
  closed_ = std::max(closed_, std::min(fence.epoch, open_ - 1));
  while (limbo_ != nullptr && limbo_->idle.freed <= closed_) {
    Piece* piece = limbo_;
    limbo_ = piece->idle.left;
    if (limbo_ == nullptr) limbo_end_ = nullptr;
    in_limbo_ -= piece->size;
    piece->become(State::taken);
    put(piece, kEverybody, 0);
  }
}

void OnDemand::forget_stream(StreamKey key) {
  const std::lock_guard hold(lock_);
  Stream* stream = key == kNoStream ? nullptr : known_.find(key.value);
  if (stream == nullptr) return;
  known_.erase(stream);
  {
    const std::lock_guard hold_cache(stream->cache.lock);
    stream->cache.serve(0);
    stream->cache.drain(kEver, [&](Piece* piece) {
      blocks_.erase(piece);
      settle(piece, piece->idle.freed);
    });
  }
  for (FreeIndex& index : stream->free) index.drain([&](Piece* piece) { settle(piece, piece->idle.freed); });
  unused_.push_back(stream->index);
}

// Reads a live block while nobody can free it.
template <typename Read>
void OnDemand::with_live(Piece* piece, Address address, Read read) const {
  auto& home = const_cast<OnDemand*>(this)->home_of(piece);
  const std::lock_guard hold(home.cache.lock);
  if (piece->is_live_at(address)) read(block_of(*piece));
}

std::optional<Block> OnDemand::find(Address address) const {
  std::optional<Block> found;
  const auto keep = [&](const Block& block) { found = block; };
  // Most questions are about the first byte; those do not take the engine's lock.
  if (Piece* piece = address.value == 0 ? nullptr : blocks_.find(address.value)) {
    with_live(piece, address, keep);
    return found;
  }
  const std::lock_guard hold(lock_);
  if (Piece* piece = arena_.find(address)) with_live(piece, piece->address(), keep);
  return found;
}

void OnDemand::each_live(const std::function<void(const Block&)>& visit) const {
  const std::lock_guard hold(lock_);
  arena_.each([&](Piece& piece) { with_live(&piece, piece.address(), visit); });
}

Bytes OnDemand::live() const {
  Bytes free = in_limbo_;
  streams_.each([&](const Stream& stream) { free += stream.free_bytes() + stream.cache.bytes(); });
  return arena_.reserved() - std::min(free, arena_.reserved());
}

Bytes OnDemand::trim(Bytes keep) {
  const std::lock_guard hold(lock_);
  if (arena_.reserved() <= keep) return 0;
  arena_.prepare();
  reclaim_fenced();
  return release_free(arena_.reserved() - keep);
}

Snapshot OnDemand::snapshot() {
  settle_meters();
  const std::lock_guard hold(lock_);
  reclaim_fenced();
  Snapshot now;
  now.in_limbo = in_limbo_;
  now.reserved = arena_.reserved();
  now.live = live();
  now.cached = now.reserved - now.live - now.in_limbo;
  now.reserved_peak = arena_.reserved_peak();
  for (const FreeIndex& index : everybody_.free)
    if (const Piece* largest = index.largest())
      now.largest_free = std::max(now.largest_free, largest_request(largest->range()));
  now.free_pages = free_pages();
  now.requested = requested_[0].sum();
  now.requested_peak = requested_[0].peak();
  now.grouped = requested_[1].sum();
  now.grouped_peak = requested_[1].peak();
  now.releasable = everybody_.free[false].in_pages() + everybody_.free[true].in_pages();
  return now;
}

}  // namespace tidepool
