// What the doctor found, for programs; schema.md describes it.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "shim/cli/doctor/finding.hpp"
#include "shim/cli/doctor/machine.hpp"

namespace tidepool::cli::doctor {

inline constexpr int kDoctorSchema = 1;

nlohmann::ordered_json to_json(const Findings& findings);
nlohmann::ordered_json to_json(const Machine& machine);

}  // namespace tidepool::cli::doctor
