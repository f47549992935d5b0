// What `run` says at the end, worked out from the gathered report.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace tidepool::cli {

// "GPU 0: 1.1 GiB asked for at the peak, 1.5 GiB held of 80.0 GiB, by 1 of 2 processes; set: ..."
std::string usage_line(const nlohmann::json& gathered);

// What to use next time; empty where nothing can be said.
std::string advice(const nlohmann::json& gathered);

// Both in a form for programs, with the path of the kept report.
nlohmann::json summary(const nlohmann::json& gathered, const std::string& kept_as);

}  // namespace tidepool::cli
