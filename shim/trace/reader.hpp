// A trace file as data: every event that it still has, in the order in which they happened.
//
// Threading: none. The file may be written meanwhile; then it is read up to about now.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "shim/trace/format.hpp"

namespace tidepool::trace {

struct TracedEvent {
  std::uint64_t time = 0;  // ns since the recording began
  std::uint64_t address = 0;
  std::uint64_t size = 0;
  std::uint64_t stream = 0;
  std::uint64_t owner = 0;
  std::uint64_t held = 0;
  std::uint32_t thread = 0;
  Action action{};
  Family family{};
  Source source{};
  std::uint8_t device = 0;
};

struct TracedDevice {
  int ordinal = 0;
  std::string uuid;
  std::string name;
  std::uint64_t total = 0;
};

struct Trace {
  std::uint64_t pid = 0;
  std::vector<std::string> command;
  std::string mode;
  std::uint64_t wall_base = 0;  // ns since 1970 at time 0
  std::uint64_t ended = 0;      // 0: the process was killed, or lives
  int failure = 0;              // errno that ended the recording early; 0: none did
  std::uint64_t missing = 0;    // records, at most, that later ones have replaced
  std::vector<TracedDevice> devices;
  // Where some are missing, blocks that were made before and ended later come first, as if made then.
  std::vector<TracedEvent> events;
};

// Throws std::runtime_error with what is wrong with the file, without its name.
Trace read(const std::string& path);

}  // namespace tidepool::trace
