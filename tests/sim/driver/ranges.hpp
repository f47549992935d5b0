// Free ranges of an address space: best fit, lowest address first, neighbours joined on return.
// Knows nothing of memory; the heap, the pools and the physical pages each keep one.
#pragma once
#include <cstdint>
#include <map>
#include <set>
#include <utility>

#include "node_store.hpp"

namespace sim {

class Ranges {
  using Sizes =
      std::set<std::pair<std::uint64_t, std::uint64_t>, std::less<std::pair<std::uint64_t, std::uint64_t>>,
               NodeStore<std::pair<std::uint64_t, std::uint64_t>>>;

 public:
  // base -> size
  using ByBase = std::map<std::uint64_t, std::uint64_t, std::less<std::uint64_t>,
                          NodeStore<std::pair<const std::uint64_t, std::uint64_t>>>;

  // Makes [base, base + size) free. It may touch free neighbours, but not overlap them. The free range
  // that holds it now, as [base, size).
  std::pair<std::uint64_t, std::uint64_t> give(std::uint64_t base, std::uint64_t size);
  // Takes a range of that size whose base is a multiple of alignment (a power of two); 0 if none.
  // Address 0 is never given in, so that 0 can mean "none".
  std::uint64_t take(std::uint64_t size, std::uint64_t alignment);
  // Takes exactly [base, base + size); false unless all of it is free.
  bool take_at(std::uint64_t base, std::uint64_t size);
  // The free range that holds address, as [base, size); size 0 if it is not free.
  std::pair<std::uint64_t, std::uint64_t> around(std::uint64_t address) const;
  std::uint64_t total() const { return total_; }
  const ByBase& by_base() const { return by_base_; }

 private:
  void add(std::uint64_t base, std::uint64_t size);
  void drop(ByBase::iterator at);

  ByBase by_base_;
  Sizes by_size_;
  std::uint64_t total_ = 0;
};

constexpr std::uint64_t round_up(std::uint64_t value, std::uint64_t unit) {
  return (value + unit - 1) / unit * unit;
}

}  // namespace sim
