// The books of the referee; see burials.hpp.
#include "burials.hpp"

#include <cstdio>
#include <iterator>

namespace referee {
namespace {

std::string at(std::uint64_t base, std::uint64_t size) {
  char text[64];
  std::snprintf(text, sizeof text, "%#lx + %lu bytes", base, size);
  return text;
}

}  // namespace

std::vector<std::string> Burials::hand_out(std::uint64_t base, const Handed& block, const IsOver& over) {
  std::vector<std::string> broken;
  const std::uint64_t end = base + block.size;
  auto other = live_.lower_bound(base);
  if (other != live_.begin() && std::prev(other)->first + std::prev(other)->second.size > base) --other;
  for (; other != live_.end() && other->first < end; ++other)
    broken.push_back(block.by + " gave " + at(base, block.size) + ", of which " +
                     at(other->first, other->second.size) + " of " + other->second.by + " is still in use");
  auto grave = graves_.lower_bound(base);
  if (grave != graves_.begin() && std::prev(grave)->first + std::prev(grave)->second.size > base) --grave;
  while (grave != graves_.end() && grave->first < end) {
    const auto next = std::next(grave);
    ++checked_;
    for (const Ticket& ticket : *grave->second.until)
      if (!over(ticket))
        broken.push_back(block.by + " gave " + at(base, block.size) + " while the device may still use " +
                         at(grave->first, grave->second.size) + ", " + *grave->second.story + ": operation " +
                         std::to_string(ticket.number) + " of stream " + std::to_string(ticket.stream) +
                         " is not over");
    open_grave(grave, base, block.size);
    grave = next;
  }
  live_[base] = block;
  return broken;
}

// What was not handed out again stays buried.
void Burials::open_grave(Graves::iterator grave, std::uint64_t base, std::uint64_t size) {
  const std::uint64_t begin = grave->first, end = begin + grave->second.size;
  const Grave rest = grave->second;
  graves_.erase(grave);
  if (begin < base) graves_[begin] = {base - begin, rest.until, rest.story};
  if (end > base + size) graves_[base + size] = {end - (base + size), rest.until, rest.story};
}

std::optional<Handed> Burials::bury(std::uint64_t base, const std::string& by, Tickets until,
                                    bool on_a_stream) {
  const auto found = live_.find(base);
  if (found == live_.end()) return std::nullopt;
  const Handed block = found->second;
  live_.erase(found);
  if (block.stream_ordered && !on_a_stream) until.clear();
  graves_[base] = {block.size, std::make_shared<const Tickets>(std::move(until)),
                   std::make_shared<const std::string>("of " + block.by + ", freed by " + by)};
  return block;
}

void Burials::undo_burial(std::uint64_t base, const Handed& block) {
  graves_.erase(base);
  live_[base] = block;
}

void Burials::end_context(std::uint64_t context, const std::string& by, const Tickets& until) {
  if (!context) return;
  std::vector<std::uint64_t> bases;
  for (const auto& [base, block] : live_)
    if (block.context == context) bases.push_back(base);
  for (const std::uint64_t base : bases) bury(base, by, until, false);
}

}  // namespace referee
