// What `run` says at the end, worked out from the gathered report.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace tidepool::cli {

// "GPU 0: 1.1 GiB asked for at the peak, 1.5 GiB held of 80.0 GiB, by 1 of 2 processes; set: ..."
std::string usage_line(const nlohmann::json& gathered);

// What to use next time; empty where nothing can be said.
std::string advice(const nlohmann::json& gathered);

// The part of a device for `bytes` and some room: "0.05".
std::string fraction_for(std::uint64_t bytes, std::uint64_t total);

// Room for pieces that do not fit together, over what was asked for at once.
inline constexpr double kSlack = 1.1;

// Both in a form for programs, with the path of the kept report.
nlohmann::json summary(const nlohmann::json& gathered, const std::string& kept_as);

}  // namespace tidepool::cli
