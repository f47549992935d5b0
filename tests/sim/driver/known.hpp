// What a stream knows to be over before its next operation: the highest such ticket of each stream.
//
// A vector clock. It grows by waits (events, the legacy stream's rules) and never shrinks but by
// forgetting streams that are gone, so it answers "is this ordered before that" for ever.
#pragma once
#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace sim {

// The number of an operation in its stream: 1, 2, 3, …
using Ticket = std::uint64_t;

class Known {
 public:
  Ticket of(std::uint64_t lane) const {
    for (const auto& [id, ticket] : tickets_)
      if (id == lane) return ticket;
    return 0;
  }
  void raise(std::uint64_t lane, Ticket ticket) {
    for (auto& [id, known] : tickets_)
      if (id == lane) {
        known = std::max(known, ticket);
        return;
      }
    tickets_.emplace_back(lane, ticket);
  }
  void merge(const Known& other) {
    for (const auto& [id, ticket] : other.tickets_) raise(id, ticket);
  }
  template <typename Condition>
  void forget_if(Condition gone) {
    std::erase_if(tickets_, [&](const auto& entry) { return gone(entry.first); });
  }
  std::size_t size() const { return tickets_.size(); }

 private:
  std::vector<std::pair<std::uint64_t, Ticket>> tickets_;  // few: a search is a loop
};

}  // namespace sim
