// What the environment asks of the simulated GPU. Read once, when the driver is first used.
#pragma once
#include <cstddef>
#include <string>

namespace sim {

struct Settings {
  int devices = 1;                   // SIM_DEVICES
  std::size_t memory = 80ull << 30;  // SIM_MEMORY, bytes of each device
  int instances = 0;                 // SIM_MIG, instances that each device is cut into; 0: MIG is off
  std::string log;                   // SIM_LOG, %p is the pid
  std::string stats;                 // SIM_STATS, %p is the pid
  std::string machine;               // SIM_MACHINE, file of the budget that processes share
};

const Settings& settings();

// "80GiB", "512MiB", "4KiB" or plain bytes; 0 where it cannot be understood.
std::size_t parse_size(const std::string& text);

// %p replaced by this process's id.
std::string expand_path(std::string path);

}  // namespace sim
