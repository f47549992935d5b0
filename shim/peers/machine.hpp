// What a process in need asks of the machine: who holds the device, and how much of it is free by now. NVML
// is opened at the first question and stays open.
//
// Threading: any thread. Both may wait for the driver, a second and more where a machine has many GPUs and no
// persistence daemon.
#pragma once

#include "shim/peers/usage.hpp"

namespace tidepool::peers {

struct DeviceUsage {
  std::string problem;  // NVML is not there, or does not know the device; empty: it answers
  Answer<Memory> memory;
  Answer<std::vector<Holder>> holders;
};

// `uuid` as nvidia-smi writes it; that of a MIG instance too.
DeviceUsage usage_of(const std::string& uuid);

// Bytes; nothing where it is not known.
std::optional<Bytes> free_memory(const std::string& uuid);

}  // namespace tidepool::peers
