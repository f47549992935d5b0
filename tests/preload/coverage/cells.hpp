// The matrix as data: a client library, opened in one way, on one driver; run with and without the shim.
#pragma once

#include "tests/preload/harness.hpp"

namespace tidepool::test {

using Counts = std::map<std::string, std::uint64_t>;

struct Cell {
  std::string client;
  std::string opening;
  std::string driver;
  int rounds = 1;  // the library is closed in between
};

extern const std::vector<std::string> kClients;
extern const std::vector<std::string> kDrivers;  // folders: the simulated driver first
extern const Environment kAudited;

std::vector<Cell> cells(const std::vector<std::string>& openings, int rounds = 1);
std::string name_of(const Cell& cell);
std::vector<std::string> command_of(const Cell& cell);
Environment environment_of(const Cell& cell, Environment more = {});
Run open_client(const Cell& cell, const std::string& mode, const Environment& more = {});

// The same answers as without the shim, and every call counted.
void check_covered(const Cell& cell, const std::vector<std::string>& modes, const Environment& more = {});

// A sanitizer's runtime ends a program that uses RTLD_DEEPBIND, cannot be loaded once more into a namespace,
// and needs memory that a hardened system denies: such cells and cases are left out there, with a line.
bool left_out(const char* what);

// The lines of a report's list.
std::string listed(const nlohmann::json& lines);

}  // namespace tidepool::test
