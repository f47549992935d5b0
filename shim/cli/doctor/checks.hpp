// The checks of a machine: tables of functions that each look at one thing. They read plain data only, so a
// test can judge a machine that does not exist.
#pragma once

#include <span>

#include "shim/cli/doctor/finding.hpp"
#include "shim/cli/doctor/machine.hpp"

namespace tidepool::cli::doctor {

using MachineCheck = void (*)(const Machine&, Findings&);

std::span<const MachineCheck> driver_checks();        // checks_driver.cpp
std::span<const MachineCheck> gpu_checks();           // checks_gpu.cpp
std::span<const MachineCheck> surroundings_checks();  // checks_surroundings.cpp
std::span<const MachineCheck> software_checks();      // checks_software.cpp

// All of them, in the order of the screen.
Findings judge(const Machine& machine);

// "GPU 0"
std::string gpu_label(const Gpu& gpu);

}  // namespace tidepool::cli::doctor
