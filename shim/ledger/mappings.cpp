// The application's own virtual memory: handles and mappings.
#include "shim/ledger/mappings.hpp"

#include <algorithm>

namespace tidepool {

Mappings::Id Mappings::created(std::uint64_t handle, Physical physical) {
  const std::lock_guard hold(lock_);
  const Id id = next_id_++;
  memories_[id] = {.physical = physical, .uses = 1, .withheld = {}};
  handles_.emplace(handle, id);
  return id;
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
  Memory& memory = memories_[known->second];
  ++memory.uses;
  if (memory.mappings++ > 0 || size != memory.physical.size) memory.physical.kind = Physical::kOnce;
  memory.was_mapped = true;
  mapped_[at.value] = {at, size, known->second};
}

void Mappings::share(std::uint64_t handle) {
  const std::lock_guard hold(lock_);
  if (const auto known = handles_.find(handle); known != handles_.end())
    memories_[known->second].physical.kind = Physical::kOnce;
}

std::vector<std::uint64_t> Mappings::share(Range range) {
  const std::lock_guard hold(lock_);
  std::vector<std::uint64_t> released;
  auto next = mapped_.upper_bound(range.begin.value);
  if (next != mapped_.begin()) --next;
  for (; next != mapped_.end() && next->first < range.end().value; ++next) {
    const Mapping& mapping = next->second;
    if (mapping.at + mapping.size <= range.begin) continue;
    Memory& memory = memories_[mapping.id];
    memory.physical.kind = Physical::kOnce;
    if (!memory.withheld) continue;
    released.push_back(*memory.withheld);
    withheld_.erase(*memory.withheld);
    memory.withheld.reset();
  }
  return released;
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
    --memories_[next->second.id].mappings;
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
  for (const Mapping& mapping : mappings) {
    mapped_[mapping.at.value] = mapping;
    ++memories_[mapping.id].mappings;
  }
}

bool Mappings::withhold(std::uint64_t handle, Id id) {
  const std::lock_guard hold(lock_);
  const auto found = memories_.find(id);
  if (found == memories_.end()) return false;
  Memory& memory = found->second;
  // What was never seen mapped may be mapped by a way that we do not see.
  if (memory.physical.kind == Physical::kOnce || !memory.was_mapped) return false;
  withheld_.insert(handle);
  memory.withheld = handle;
  return true;
}

bool Mappings::is_withheld(std::uint64_t handle) const {
  const std::lock_guard hold(lock_);
  return withheld_.count(handle) > 0;
}

std::optional<Mappings::Ended> Mappings::end_use(Id id) {
  const std::lock_guard hold(lock_);
  const auto memory = memories_.find(id);
  if (memory == memories_.end() || --memory->second.uses > 0) return std::nullopt;
  const Ended ended{memory->second.physical, memory->second.withheld};
  if (ended.withheld) withheld_.erase(*ended.withheld);
  memories_.erase(memory);
  return ended;
}

Bytes Mappings::largest(int device) const {
  const std::lock_guard hold(lock_);
  Bytes most = 0;
  for (const auto& [id, memory] : memories_)
    if (memory.physical.device == device && memory.uses > 0) most = std::max(most, memory.physical.size);
  return most;
}

}  // namespace tidepool
