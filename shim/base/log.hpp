// One line of log at a time. spdlog stands behind it and is seen nowhere else.
//
// Threading: any thread, any time after the first CUDA call. Never called on a lookup path: the first
// line allocates. A line is one write(2), so a fork never inherits a held lock.
#pragma once

#include <string_view>

#include "shim/base/settings.hpp"

namespace tidepool::log {

// Once, at the start. Before it, lines of level warn and above go to stderr.
void open(LogLevel level, const std::string& file);

void error(std::string_view line);
void warn(std::string_view line);
void info(std::string_view line);
void debug(std::string_view line);

}  // namespace tidepool::log
