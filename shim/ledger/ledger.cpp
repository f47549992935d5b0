// The driver's own blocks.
#include "shim/ledger/ledger.hpp"

#include <algorithm>
#include <utility>

namespace tidepool {

std::optional<Record> Ledger::add(Address address, Record record) {
  Shard& home = shard(address);
  const std::lock_guard hold(home.lock);
  const auto [entry, added] = home.records.try_emplace(address.value, record);
  if (added) return std::nullopt;
  return std::exchange(entry->second, record);
}

std::optional<Record> Ledger::find(Address address) const {
  const Shard& home = shard(address);
  const std::lock_guard hold(home.lock);
  const auto found = home.records.find(address.value);
  return found == home.records.end() ? std::nullopt : std::optional(found->second);
}

std::optional<Record> Ledger::remove(Address address) {
  Shard& home = shard(address);
  const std::lock_guard hold(home.lock);
  const auto found = home.records.find(address.value);
  if (found == home.records.end() || found->second.kept) return std::nullopt;
  const Record record = found->second;
  home.records.erase(found);
  return record;
}

std::optional<Record> Ledger::keep(Address address) {
  Shard& home = shard(address);
  const std::lock_guard hold(home.lock);
  const auto found = home.records.find(address.value);
  if (found == home.records.end() || found->second.kept || found->second.form == Record::kOnce)
    return std::nullopt;
  found->second.kept = true;
  return found->second;
}

void Ledger::unkeep(Address address) {
  Shard& home = shard(address);
  const std::lock_guard hold(home.lock);
  if (const auto found = home.records.find(address.value); found != home.records.end())
    found->second.kept = false;
}

std::optional<Record> Ledger::remove_kept(Address address) {
  Shard& home = shard(address);
  const std::lock_guard hold(home.lock);
  const auto found = home.records.find(address.value);
  if (found == home.records.end() || !found->second.kept) return std::nullopt;
  const Record record = found->second;
  home.records.erase(found);
  return record;
}

Bytes Ledger::largest(int device) const {
  Bytes most = 0;
  for (const Shard& home : shards_) {
    const std::lock_guard hold(home.lock);
    for (const auto& [address, record] : home.records)
      if (record.device == device && !record.kept) most = std::max(most, record.requested);
  }
  return most;
}

bool Ledger::is_kept(Address address) const {
  const std::optional<Record> record = find(address);
  return record && record->kept;
}

void Ledger::share(Address address) {
  Shard& home = shard(address);
  const std::lock_guard hold(home.lock);
  if (const auto found = home.records.find(address.value); found != home.records.end())
    found->second.form = Record::kOnce;
}

std::vector<std::pair<Address, Record>> Ledger::remove_context(std::uint64_t context) {
  std::vector<std::pair<Address, Record>> removed;
  for (Shard& shard : shards_) {
    const std::lock_guard hold(shard.lock);
    std::erase_if(shard.records, [&](const auto& entry) {
      const auto& [address, record] = entry;
      if (record.kind != Kind::synchronous || record.context != context || record.kept) return false;
      removed.emplace_back(Address{address}, record);
      return true;
    });
  }
  return removed;
}

}  // namespace tidepool
