// Who holds how much of a device, over all processes of the machine, as far as NVML says.
//
// Threading: any thread; NVML has its own locks. Allocates.
#pragma once

#include <ctime>
#include <optional>
#include <string>
#include <vector>

#include "policies/units.hpp"
#include "shim/peers/nvml.hpp"

namespace tidepool::peers {

// What NVML answered, or why it did not.
template <typename Value>
struct Answer {
  std::optional<Value> value;
  std::string problem;  // in words; empty with a value
};

struct Memory {
  Bytes total = 0;
  Bytes used = 0;
  Bytes free = 0;
};

// A process that NVML lists.
struct Holder {
  long pid = 0;
  std::optional<Bytes> bytes;  // nothing: NVML does not say
  bool in_sight = false;       // has an entry in /proc here; else it is another container's, or gone
  std::string user;
  std::string command;
  std::optional<std::time_t> since;  // when the process started
  bool of_mps = false;
};

// Fills in who a process is; nothing of it if it is not in sight.
void look_up(Holder& holder);

// Requires: nvml.init() has succeeded.
Answer<Memory> memory_of(const Nvml& nvml, NvmlDevice device);
// The largest first.
Answer<std::vector<Holder>> holders_of(const Nvml& nvml, NvmlDevice device);

}  // namespace tidepool::peers
