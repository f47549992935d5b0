// Memory freed on one stream and not yet fenced for the others: later work on that stream may have it
// at once. Blocks wait whole, by exact size, last in first out; only when that fails are they taken
// apart into loose ranges. Unlike the arena's free memory, no other stream may use it.
//
// Units: bytes. Cost: O(1) a pop or push. Threads: none; the owner's lock covers it.
// Errors: std::bad_alloc.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "policies/free_ranges.hpp"
#include "policies/units.hpp"

namespace tidepool {

using Epoch = std::uint64_t;  // counts opened fences; a fence of epoch e covers frees up to e

// A block that was handed out, or waits in a stream's cache to be handed out again.
struct Entry {
  Bytes size = 0;
  Epoch freed = 0;  // valid while not live
  bool live = false;
};
using Entries = std::map<Address, Entry>;

class StreamCache {
 public:
  // Requires: freed no earlier than every entry pushed before.
  void push(Entries::iterator entry) { by_size_[entry->second.size].push_back(entry); }

  // The last pushed block of exactly `size` bytes.
  std::optional<Entries::iterator> pop(Bytes size) {
    const auto found = by_size_.find(size);
    if (found == by_size_.end() || found->second.empty()) return std::nullopt;
    const auto entry = found->second.back();
    found->second.pop_back();
    return entry;
  }

  // Gives every block freed up to `last` to `take`, which may erase it. If `take` throws, the blocks
  // before that one are gone from the cache. O(those blocks + sizes seen).
  template <typename Take>
  void drain(Epoch last, Take take) {
    for (auto& [size, blocks] : by_size_) {
      auto kept = blocks.begin();
      try {
        for (; kept != blocks.end() && (*kept)->second.freed <= last; ++kept) take(*kept);
      } catch (...) {
        blocks.erase(blocks.begin(), kept);
        throw;
      }
      blocks.erase(blocks.begin(), kept);
    }
  }

  template <typename Visit>
  void each(Visit visit) const {
    for (const auto& [size, blocks] : by_size_)
      for (const auto& block : blocks) visit(block);
  }

  FreeRanges loose;
  Epoch loose_freed = 0;  // the last free that is part of `loose`

 private:
  std::unordered_map<Bytes, std::vector<Entries::iterator>> by_size_;
};

}  // namespace tidepool
