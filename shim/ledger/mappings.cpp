// The application's own virtual memory: handles and mappings.
#include "shim/ledger/mappings.hpp"

namespace tidepool {

void Mappings::created(std::uint64_t handle, Physical physical) {
  const std::lock_guard hold(lock_);
  const Id id = next_id_++;
  memories_[id] = {physical, 1};
  handles_.emplace(handle, id);
}

void Mappings::retained(std::uint64_t handle, Address inside) {
  const std::lock_guard hold(lock_);
  auto after = mapped_.upper_bound(inside.value);
  if (after == mapped_.begin()) return;
  const Mapping& mapping = (--after)->second;
  if (inside >= mapping.at + mapping.size) return;
  ++memories_[mapping.id].uses;
  handles_.emplace(handle, mapping.id);
}

void Mappings::mapped(Address at, Bytes size, std::uint64_t handle) {
  const std::lock_guard hold(lock_);
  const auto known = handles_.find(handle);
  if (known == handles_.end()) return;
  ++memories_[known->second].uses;
  mapped_[at.value] = {at, size, known->second};
}

std::optional<Mappings::Id> Mappings::take_handle(std::uint64_t handle) {
  const std::lock_guard hold(lock_);
  const auto known = handles_.find(handle);
  if (known == handles_.end()) return std::nullopt;
  const Id id = known->second;
  handles_.erase(known);
  return id;
}

std::vector<Mappings::Mapping> Mappings::take_mappings(Range range) {
  const std::lock_guard hold(lock_);
  std::vector<Mapping> taken;
  auto next = mapped_.lower_bound(range.begin.value);
  while (next != mapped_.end() && next->first < range.end().value) {
    taken.push_back(next->second);
    next = mapped_.erase(next);
  }
  return taken;
}

void Mappings::put_back(std::uint64_t handle, Id id) {
  const std::lock_guard hold(lock_);
  handles_.emplace(handle, id);
}

void Mappings::put_back(const std::vector<Mapping>& mappings) {
  const std::lock_guard hold(lock_);
  for (const Mapping& mapping : mappings) mapped_[mapping.at.value] = mapping;
}

std::optional<Physical> Mappings::end_use(Id id) {
  const std::lock_guard hold(lock_);
  const auto memory = memories_.find(id);
  if (memory == memories_.end() || --memory->second.uses > 0) return std::nullopt;
  const Physical physical = memory->second.physical;
  memories_.erase(memory);
  return physical;
}

}  // namespace tidepool
