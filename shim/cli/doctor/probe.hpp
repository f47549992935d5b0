// Small trials in child processes, so that what hangs or dies does so there.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "shim/cli/child.hpp"

namespace tidepool::cli::doctor {

struct Trial {
  bool ended = false;  // by itself, with exit code 0
  std::string output;
};

// What the child writes to `report_to`. It is killed when the time is up.
Trial try_in_child(const std::function<void(int report_to)>& work, std::chrono::seconds patience);

// A command's stdout, or its stderr.
enum class Stream { out = 1, error = 2 };
Trial try_command(const std::vector<std::string>& command, const Variables& environment, Stream stream,
                  std::chrono::seconds patience);

}  // namespace tidepool::cli::doctor
