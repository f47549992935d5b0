// Best-fit free ranges; see ranges.hpp.
#include "ranges.hpp"

#include <iterator>

namespace sim {

void Ranges::add(std::uint64_t base, std::uint64_t size) {
  by_base_.emplace(base, size);
  by_size_.emplace(size, base);
  total_ += size;
}

void Ranges::drop(ByBase::iterator at) {
  total_ -= at->second;
  by_size_.erase({at->second, at->first});
  by_base_.erase(at);
}

std::pair<std::uint64_t, std::uint64_t> Ranges::give(std::uint64_t base, std::uint64_t size) {
  auto next = by_base_.lower_bound(base);
  if (next != by_base_.begin()) {
    auto before = std::prev(next);
    if (before->first + before->second == base) {
      base = before->first;
      size += before->second;
      drop(before);
    }
  }
  if (next != by_base_.end() && base + size == next->first) {
    size += next->second;
    drop(next);
  }
  add(base, size);
  return {base, size};
}

std::uint64_t Ranges::take(std::uint64_t size, std::uint64_t alignment) {
  if (by_base_.empty()) return 0;
  for (auto at = by_size_.lower_bound({size, 0}); at != by_size_.end(); ++at) {
    const std::uint64_t base = round_up(at->second, alignment);
    if (base + size > at->second + at->first) continue;
    take_at(base, size);
    return base;
  }
  return 0;
}

bool Ranges::take_at(std::uint64_t base, std::uint64_t size) {
  auto at = by_base_.upper_bound(base);
  if (at == by_base_.begin()) return false;
  --at;
  const auto [start, length] = *at;
  if (base + size > start + length) return false;
  drop(at);
  if (base > start) add(start, base - start);
  if (base + size < start + length) add(base + size, start + length - base - size);
  return true;
}

std::pair<std::uint64_t, std::uint64_t> Ranges::around(std::uint64_t address) const {
  auto at = by_base_.upper_bound(address);
  if (at == by_base_.begin()) return {0, 0};
  --at;
  if (address >= at->first + at->second) return {0, 0};
  return *at;
}

}  // namespace sim
