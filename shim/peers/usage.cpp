// Asks NVML for the memory of a device and the processes on it.
#include "shim/peers/usage.hpp"

#include <algorithm>

namespace tidepool::peers {
namespace {

using Question = NvmlEntryOf<int(NvmlDevice, unsigned*, NvmlProcess*)>::type;

template <typename Value>
Answer<Value> refused(int result) {
  return {std::nullopt, nvml_error(result)};
}

}  // namespace

Answer<Memory> memory_of(const Nvml& nvml, NvmlDevice device) {
  NvmlMemory memory{};
  memory.version = kNvmlMemoryVersion;
  if (nvml.memory(device, &memory) == nvml_result::kSuccess)
    return {Memory{memory.total, memory.used, memory.free}, ""};
  NvmlOldMemory old{};
  const int result = nvml.old_memory(device, &old);
  if (result != nvml_result::kSuccess) return refused<Memory>(result);
  return {Memory{old.total, old.used, old.free}, ""};
}

namespace {

// Processes come while they are counted, so there is room for more than were.
int list_processes(const Question& question, NvmlDevice device, std::vector<NvmlProcess>& list) {
  unsigned count = 0;
  int result = question(device, &count, nullptr);
  for (int tries = 0; result == nvml_result::kInsufficientSize && tries < 4; ++tries) {
    count += 16;
    list.resize(count);
    result = question(device, &count, list.data());
  }
  list.resize(result == nvml_result::kSuccess ? std::min<std::size_t>(count, list.size()) : 0);
  return result;
}

// A process may be listed as a compute and as a graphics one, with all of its memory each time.
void add_holder(std::vector<Holder>& holders, const NvmlProcess& process, bool of_mps) {
  Holder holder;
  holder.pid = process.pid;
  if (process.used != kNvmlNotAvailable) holder.bytes = process.used;
  holder.of_mps = of_mps;
  const auto known = std::find_if(holders.begin(), holders.end(),
                                  [&](const Holder& entry) { return entry.pid == holder.pid; });
  if (known == holders.end()) {
    look_up(holder);
    holders.push_back(std::move(holder));
    return;
  }
  known->bytes = std::max(known->bytes, holder.bytes);
  known->of_mps = known->of_mps || of_mps;
}

}  // namespace

Answer<std::vector<Holder>> holders_of(const Nvml& nvml, NvmlDevice device) {
  std::vector<Holder> holders;
  std::vector<NvmlProcess> list;
  const int result = list_processes(nvml.compute_processes, device, list);
  if (result != nvml_result::kSuccess) return refused<std::vector<Holder>>(result);
  for (const NvmlProcess& process : list) add_holder(holders, process, false);
  for (const Question* question : {&nvml.graphics_processes, &nvml.mps_processes}) {
    std::vector<NvmlProcess> more;
    list_processes(*question, device, more);
    for (const NvmlProcess& process : more) add_holder(holders, process, question == &nvml.mps_processes);
  }
  std::stable_sort(holders.begin(), holders.end(),
                   [](const Holder& one, const Holder& other) { return one.bytes > other.bytes; });
  return {std::move(holders), ""};
}

}  // namespace tidepool::peers
