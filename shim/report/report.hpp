// The report of one process: plain data in, JSON (schema 1) out.
//
// Threading: pure functions. write_report is called at exit and on out-of-memory; it allocates.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "policies/units.hpp"
#include "shim/report/announcer.hpp"

namespace tidepool::report {

struct OutOfMemory {
  std::string time;   // ISO 8601, UTC
  std::string entry;  // what the application called
  Bytes requested = 0;
  std::optional<Bytes> free;  // on the device, where it was asked
  Bytes total = 0;
  Bytes live = 0;
  Bytes reserved = 0;
};

struct Device {
  int ordinal = 0;
  std::string uuid;
  std::string name;
  Bytes total = 0;
  std::optional<Bytes> limit;
  Bytes live = 0;
  Bytes requested = 0;  // over all allocations, and of that:
  Bytes served = 0;     // out of the arena, not by the driver
  Bytes requested_peak = 0;
  Bytes reserved = 0;
  Bytes reserved_peak = 0;
  Bytes cached = 0;                // of `reserved`: what the application does not have
  Bytes unbacked_reservation = 0;  // a pool's warm-up that was answered with addresses alone
  Bytes lazily_backed = 0;         // of `live`: managed memory, which takes device memory where it is touched
  std::uint64_t allocations = 0;
  std::uint64_t frees = 0;
  std::vector<OutOfMemory> out_of_memory;
};

struct Setting {
  std::string variable;
  std::string value;
  bool from_environment = false;
};

struct Report {
  long pid = 0;
  std::vector<std::string> command;
  std::string mode;
  std::vector<Setting> settings;
  std::vector<std::pair<std::string, std::string>> frameworks;
  std::vector<std::pair<std::string, std::string>> set_late;  // by the program, after it had started CUDA
  std::string started;
  std::string ended;
  std::vector<Device> devices;
  std::map<std::string, std::uint64_t> intercepted;
  std::map<std::string, std::uint64_t> driver_calls;
  std::vector<std::string> uncovered;
  std::vector<Diagnosis> diagnoses;
  std::uint64_t refusals_counted = 0;  // of causes that had a diagnosis already
};

std::string to_json(const Report& report);

// Writes the whole file or none: beside it first, then renamed. "stderr" is the standard error.
// Returns what went wrong, empty for nothing.
std::string write_report(const std::string& json, const std::string& path);

}  // namespace tidepool::report
