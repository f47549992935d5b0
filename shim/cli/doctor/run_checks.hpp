// The checks of a command's run: tables of functions, one for each thing that can be set wrongly.
#pragma once

#include <span>

#include "shim/cli/doctor/finding.hpp"
#include "shim/cli/doctor/observation.hpp"

namespace tidepool::cli::doctor {

using RunCheck = void (*)(const Observation&, Findings&);

std::span<const RunCheck> outcome_checks();  // checks_outcome.cpp
std::span<const RunCheck> jax_checks();      // checks_jax.cpp
std::span<const RunCheck> other_checks();    // checks_frameworks.cpp
std::span<const RunCheck> setting_checks();  // checks_settings.cpp

// All of them, in the order of the screen.
Findings judge(const Observation& run);

}  // namespace tidepool::cli::doctor
