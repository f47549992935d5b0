// Streams by number, in chunks that never move: a number is followed without a lock while others are added.
//
// Threads: operator[] any; the rest one at a time. Errors: std::bad_alloc.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace tidepool {

template <typename Stream>
class StreamStore {
 public:
  StreamStore() { add(); }
  ~StreamStore() {
    for (auto& chunk : chunks_) delete[] chunk.load(std::memory_order_relaxed);
  }
  StreamStore(const StreamStore&) = delete;
  StreamStore& operator=(const StreamStore&) = delete;

  Stream& operator[](std::uint32_t index) const {
    return chunks_[index / kChunk].load(std::memory_order_acquire)[index % kChunk];
  }

  // Null: there are as many as there can be.
  Stream* add() {
    if (size_ == kChunk * chunks_.size()) return nullptr;
    auto& chunk = chunks_[size_ / kChunk];
    if (size_ % kChunk == 0) chunk.store(new Stream[kChunk], std::memory_order_release);
    Stream& added = (*this)[size_];
    added.index = size_++;
    return &added;
  }
  std::uint32_t size() const { return size_; }

  template <typename Visit>
  void each(Visit visit, std::uint32_t from = 0) const {
    for (std::uint32_t index = from; index < size_; ++index) visit((*this)[index]);
  }

 private:
  static constexpr std::uint32_t kChunk = 8;
  std::array<std::atomic<Stream*>, 4096> chunks_{};
  std::uint32_t size_ = 0;
};

}  // namespace tidepool
