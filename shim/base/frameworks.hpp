// Which variables of the frameworks are set, so that their memory comes from the arena in a form that it
// can serve: one function decides, another applies.
//
// A Python program reads these variables while it starts or at its first import, so the shim's
// constructor is the last moment at which they can be set. What was set is listed in a marker variable:
// a child inherits both, treats as unset whatever still has the marked value, and decides afresh.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "shim/base/settings.hpp"

namespace tidepool {

// NAME=VALUE;NAME=VALUE. No name or value of ours contains either sign.
inline constexpr const char* kFrameworkMarker = "TIDEPOOL_FRAMEWORK_VARIABLES";

using Variables = std::vector<std::pair<std::string, std::string>>;

// All that the decision depends on.
struct FrameworkQuestion {
  Mode mode = Mode::ondemand;
  FrameworkChoice choice = FrameworkChoice::automatic;
  Lookup environment;               // may hold what an ancestor's shim set
  std::optional<int> gpus_present;  // in the machine or container; nothing: cannot be told
};

struct FrameworkPlan {
  Variables set;                     // in force afterwards, the ones inherited and kept included
  std::vector<std::string> removed;  // inherited from an ancestor's shim, not wanted here
  std::string marker() const;        // the new value of kFrameworkMarker; empty: no marker
};

FrameworkPlan plan_framework_variables(const FrameworkQuestion& question);

// How many GPUs a list as in CUDA_VISIBLE_DEVICES leaves: its entries before the first invalid one.
int count_visible_gpus(std::string_view list, std::optional<int> gpus_present);

// Device nodes and the kernel module's list; nothing where there is neither (WSL, simulators).
std::optional<int> count_gpus_present();

// True for .../python3.11, .../pypy3 and the like.
bool names_python(std::string_view executable_path);

// For the shim's constructor. A process that is not Python pays one readlink: nothing is allocated,
// read or changed in it (bash has setenv and getenv of its own, which must not run before its main).
void apply_framework_variables();

// What this process or an ancestor set, from the marker; for the report.
Variables framework_variables_set();

// The frameworks' memory variables as they are now, whoever set them: those that JAX and PyTorch read before
// they start CUDA. (TensorFlow reads its own later, when it makes a device.)
Variables early_framework_variables();

// Of `now`, what is not in `before` with the same value.
Variables changed_since(const Variables& before, const Variables& now);

}  // namespace tidepool
