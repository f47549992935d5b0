// The ways of a block in and out, and of freed memory to its place. Where a request that no cache serves
// finds memory is search.cpp, how the arena grows growth.cpp.
#include "policies/on_demand.hpp"

#include <algorithm>

namespace tidepool {
namespace {

Block block_of(const Piece& piece) { return {piece.address(), piece.size, piece.label}; }

}  // namespace

OnDemand::OnDemand(const PolicyConfig& config, Backing& backing)
    : total_(config.total), arena_(backing, config.total), streams_(1), everybody_(streams_.front()) {}

// The stream's place, made at its first call.
OnDemand::Stream& OnDemand::stream_of(StreamKey key) {
  if (key == kNoStream) return everybody_;
  if (Stream* known = known_.find(key.value)) return *known;
  const std::lock_guard hold(lock_);
  if (Stream* known = known_.find(key.value)) return *known;
  known_.prepare(1);
  if (unused_.empty()) {
    unused_.reserve(streams_.size() + 1);
    Stream& added = streams_.emplace_back();
    added.index = static_cast<Index>(streams_.size() - 1);
    unused_.push_back(added.index);
  }
  Stream& stream = streams_[unused_.back()];
  unused_.pop_back();
  stream.cache.serve(key.value);
  known_.insert(&stream);
  return stream;
}

Result<Block> OnDemand::allocate(const Request& request) {
  if (request.size == 0) return Failure{Reason::invalid};
  const Shape shape = shape_of(request.size);
  if (shape.size > total_) return Failure{Reason::out_of_memory};
  Stream& own = stream_of(request.stream);
  {
    const std::lock_guard hold(own.cache.lock);
    // Forgotten meanwhile: its memory is not this stream's.
    if (own.key() == request.stream.value)
      if (Piece* piece = own.cache.pop(shape.size)) return hand_out(piece, request, own);
  }
  return allocate_slowly(request, shape, own);
}

// Requires: the lock of the stream's cache.
Block OnDemand::hand_out(Piece* piece, const Request& request, Stream& own) {
  const std::uint64_t number = (std::uint64_t{own.index} << 40) | ++own.last_number;
  piece->label = {request.size, request.owner, number, request.tag};
  const Block block = block_of(*piece);
  piece->become(State::live);
  return block;
}

Result<Block> OnDemand::allocate_slowly(const Request& request, Shape shape, Stream& own) {
  const std::lock_guard hold(lock_);
  if (own.key() != request.stream.value) return Failure{Reason::invalid};  // the stream died under the call
  arena_.prepare();
  blocks_.prepare(1);
  const Bytes peak = live_peak_;
  const Result<Piece*> piece = take_slowly({shape, own, request.fence_possible});
  if (!piece) {
    live_peak_ = peak;  // a program that tries how much it can get has not got it
    return piece.failure();
  }
  const std::lock_guard hold_cache(own.cache.lock);
  const Block block = hand_out(piece.value(), request, own);
  blocks_.insert(piece.value());
  return block;
}

Result<Block> OnDemand::free(Address address, StreamKey stream) {
  Piece* piece = blocks_.find(address.value);
  if (piece == nullptr || address.value == 0 || !piece->claim(address)) return Failure{Reason::unknown_block};
  return give_up(piece, stream, false);
}

Result<Block> OnDemand::free_idle(Address address) {
  Piece* piece = blocks_.find(address.value);
  if (piece == nullptr || address.value == 0 || !piece->claim(address)) return Failure{Reason::unknown_block};
  return give_up(piece, kNoStream, true);
}

// Requires: this thread has claimed the piece.
Result<Block> OnDemand::give_up(Piece* piece, StreamKey stream, bool idle) {
  const Block block = block_of(*piece);
  const Epoch freed = idle ? 0 : open_.load(std::memory_order_acquire);
  Stream* cached_by = nullptr;
  try {
    if (idle || stream != kNoStream) cached_by = &stream_of(stream);
  } catch (...) {
    piece->label = block.label;
    piece->become(State::live);
    throw;
  }
  if (cached_by != nullptr) {
    const std::lock_guard hold(cached_by->cache.lock);
    if (cached_by->key() == stream.value && cached_by->cache.push(piece, freed)) return block;
  }
  const std::lock_guard hold(lock_);
  blocks_.erase(piece);
  if (idle)
    put(piece, kEverybody, 0);
  else if (cached_by == nullptr || cached_by->key() != stream.value)
    put_in_limbo(piece, open_);
  else
    put(piece, cached_by->index, open_);
  return block;
}

// Free memory to those who may use it, joined with its neighbours of the same kind.
void OnDemand::put(Piece* piece, Index owner, Epoch freed) {
  piece->owner = owner;
  piece->idle = {nullptr, nullptr, freed};
  // Memory that an open fence covers is not joined with what was freed later: the fence would then free
  // nothing, and whoever waits for it would have to wait again and again.
  const auto alike = [&](const Piece* other) {
    return other != nullptr && other->state() == State::free && other->owner == owner &&
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
  for (Stream& stream : streams_) reclaim_fenced(stream);
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

Fence OnDemand::open_fence() {
  const std::lock_guard hold(lock_);
  return {open_.fetch_add(1, std::memory_order_acq_rel)};
}

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

std::optional<Block> OnDemand::find(Address address) const {
  // Most questions are about the first byte; those take no lock.
  if (Piece* piece = address.value == 0 ? nullptr : blocks_.find(address.value))
    return piece->if_live(address, block_of);
  const std::lock_guard hold(lock_);
  Piece* piece = arena_.find(address);
  return piece == nullptr ? std::nullopt : piece->if_live(piece->address(), block_of);
}

void OnDemand::each_live(const std::function<void(const Block&)>& visit) const {
  const std::lock_guard hold(lock_);
  arena_.each([&](Piece& piece) {
    if (const auto block = piece.if_live(piece.address(), block_of)) visit(*block);
  });
}

Bytes OnDemand::live() const {
  Bytes free = in_limbo_;
  for (const Stream& stream : streams_) free += stream.free_bytes() + stream.cache.bytes();
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
  now.releasable = everybody_.free[false].in_pages() + everybody_.free[true].in_pages();
  return now;
}

}  // namespace tidepool
