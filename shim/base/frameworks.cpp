// Which variables of the frameworks are set: the rules, and the setenv calls that follow from them.
#include "shim/base/frameworks.hpp"

#include <dirent.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>

namespace tidepool {
namespace {

constexpr const char* kJaxAllocator = "XLA_PYTHON_CLIENT_ALLOCATOR";
constexpr const char* kJaxPreallocate = "XLA_PYTHON_CLIENT_PREALLOCATE";
constexpr const char* kTensorFlowGrowth = "TF_FORCE_GPU_ALLOW_GROWTH";
constexpr const char* kTensorFlowAllocator = "TF_GPU_ALLOCATOR";
constexpr const char* kTorchAllocator = "PYTORCH_ALLOC_CONF";
constexpr const char* kTorchAllocatorOld = "PYTORCH_CUDA_ALLOC_CONF";

// All that is ever set. A marker that names anything else is not believed.
constexpr std::array kOurs{kJaxAllocator, kJaxPreallocate, kTensorFlowGrowth, kTensorFlowAllocator,
                           kTorchAllocator};

// One of them set by the user, be it to nothing, means that JAX's memory is the user's business.
constexpr std::array kJaxMemory{kJaxAllocator,
                                kJaxPreallocate,
                                "XLA_PYTHON_CLIENT_MEM_FRACTION",
                                "XLA_CLIENT_MEM_FRACTION",
                                "XLA_PYTHON_CLIENT_COLLECTIVE_MEM_SIZE_MB",
                                "JAX_PJRT_CLIENT_CREATE_OPTIONS",
                                "TF_FORCE_UNIFIED_MEMORY",
                                "TF_CUDA_MALLOC_ASYNC_SUPPORTED_PREALLOC",
                                "XLA_PJRT_GPU_HOST_MEMORY_LIMIT_GB",
                                "XLA_PJRT_GPU_HOST_MEMORY_PREALLOCATE"};

// How many ranks a launcher started; more than one shows a multi-rank launch.
constexpr std::array kRankCounts{"SLURM_NTASKS",         "SLURM_NPROCS",  "SLURM_STEP_NUM_TASKS",
                                 "OMPI_COMM_WORLD_SIZE", "PMI_SIZE",      "MPI_LOCALNRANKS",
                                 "MV2_COMM_WORLD_SIZE",  "FLUX_JOB_SIZE", "JSM_NAMESPACE_SIZE",
                                 "HOROVOD_SIZE",         "WORLD_SIZE",    "JAX_NUM_PROCESSES"};

// Launchers that tell a rank how to reach the others, whatever their number.
constexpr std::array kCoordinators{"JAX_COORDINATOR_ADDRESS", "COORDINATOR_ADDRESS",
                                   "MEGASCALE_COORDINATOR_ADDRESS", "TF_CONFIG"};

// PMIx tells a rank its number and not how many there are, so every rank of it counts, unless a count
// says that it is the only one.
constexpr std::array kPmix{"PMIX_RANK", "PMIX_NAMESPACE"};

bool ours(std::string_view name) {
  return std::any_of(kOurs.begin(), kOurs.end(), [&](const char* known) { return name == known; });
}

Variables parse_marker(std::string_view marker) {
  Variables found;
  while (!marker.empty()) {
    const std::string_view entry = marker.substr(0, marker.find(';'));
    marker.remove_prefix(std::min(marker.size(), entry.size() + 1));
    const auto equals = entry.find('=');
    if (equals == std::string_view::npos || !ours(entry.substr(0, equals))) continue;
    found.emplace_back(entry.substr(0, equals), entry.substr(equals + 1));
  }
  return found;
}

template <typename Names>
bool any_set(const Names& names, const Lookup& environment) {
  return std::any_of(names.begin(), names.end(),
                     [&](const char* name) { return environment(name) != nullptr; });
}

bool not_empty(const char* value) { return value != nullptr && *value != '\0'; }

bool multi_rank(const Lookup& environment) {
  bool alone = false;
  for (const char* name : kRankCounts) {
    const char* value = environment(name);
    if (!not_empty(value)) continue;
    const long ranks = std::strtol(value, nullptr, 10);
    if (ranks > 1) return true;
    if (ranks == 1) alone = true;
  }
  const auto present = [&](const char* name) { return not_empty(environment(name)); };
  if (std::any_of(kCoordinators.begin(), kCoordinators.end(), present)) return true;
  return !alone && std::any_of(kPmix.begin(), kPmix.end(), present);
}

int visible_gpus(const FrameworkQuestion& question, const Lookup& environment) {
  if (const char* list = environment("CUDA_VISIBLE_DEVICES"))
    return count_visible_gpus(list, question.gpus_present);
  return question.gpus_present.value_or(1);
}

// Under `auto`: what gives up nothing that a user could miss.
Variables restrained(const FrameworkQuestion& question, const Lookup& user) {
  Variables set;
  // Ranks of one job agree on more than their own memory: JAX moves that of its collectives elsewhere,
  // and none may behave unlike the others.
  if (multi_rank(user)) return set;
  const int gpus = visible_gpus(question, user);
  if (!any_set(kJaxMemory, user)) {
    // Never together: with both, JAX reports a limit of 0 bytes.
    if (gpus == 1) set.emplace_back(kJaxAllocator, "cuda_async");
    // With several GPUs JAX keeps a pool of its own, because of its collectives. Under prealloc one that
    // takes its share at once is just what was asked for, so nothing is set.
    if (gpus > 1 && question.mode == Mode::ondemand) set.emplace_back(kJaxPreallocate, "false");
  }
  if (user(kTensorFlowGrowth) == nullptr && user(kTensorFlowAllocator) == nullptr)
    set.emplace_back(kTensorFlowGrowth, "true");
  return set;
}

// Under `all`: every framework, unless the user set that very variable.
Variables unrestrained(const FrameworkQuestion& question, const Lookup& user) {
  Variables set;
  const auto unless_set = [&](const char* name, const char* value) {
    if (user(name) == nullptr) set.emplace_back(name, value);
  };
  if (visible_gpus(question, user) > 0) unless_set(kJaxAllocator, "cuda_async");
  unless_set(kTensorFlowGrowth, "true");
  unless_set(kTensorFlowAllocator, "cuda_malloc_async");
  // The old name is a setting of the same thing.
  if (user(kTorchAllocatorOld) == nullptr) unless_set(kTorchAllocator, "backend:cudaMallocAsync");
  return set;
}

}  // namespace

FrameworkPlan plan_framework_variables(const FrameworkQuestion& question) {
  const char* marker = question.environment(kFrameworkMarker);
  const Variables inherited = parse_marker(marker == nullptr ? "" : marker);
  const auto inherited_unchanged = [&](std::string_view name, const char* value) {
    return std::any_of(inherited.begin(), inherited.end(), [&](const auto& entry) {
      return entry.first == name && value != nullptr && entry.second == value;
    });
  };
  const Lookup user = [&](const char* name) {
    const char* value = question.environment(name);
    return inherited_unchanged(name, value) ? nullptr : value;
  };

  FrameworkPlan plan;
  if (question.mode == Mode::ondemand || question.mode == Mode::prealloc) {
    if (question.choice == FrameworkChoice::automatic) plan.set = restrained(question, user);
    if (question.choice == FrameworkChoice::all) plan.set = unrestrained(question, user);
  }
  for (const auto& [name, value] : inherited) {
    const bool wanted =
        std::any_of(plan.set.begin(), plan.set.end(), [&](const auto& entry) { return entry.first == name; });
    if (!wanted && inherited_unchanged(name, question.environment(name.c_str())))
      plan.removed.push_back(name);
  }
  return plan;
}

std::string FrameworkPlan::marker() const {
  std::string text;
  for (const auto& [name, value] : set) text += (text.empty() ? "" : ";") + name + "=" + value;
  return text;
}

int count_visible_gpus(std::string_view list, std::optional<int> gpus_present) {
  int count = 0;
  for (;;) {
    std::string_view entry = list.substr(0, list.find(','));
    const bool last = entry.size() == list.size();
    while (!entry.empty() && entry.front() == ' ') entry.remove_prefix(1);
    while (!entry.empty() && entry.back() == ' ') entry.remove_suffix(1);
    const bool ordinal =
        !entry.empty() && entry.size() < 6 && entry.find_first_not_of("0123456789") == std::string_view::npos;
    const bool uuid = entry.starts_with("GPU-") || entry.starts_with("MIG-");
    if (!ordinal && !uuid) return count;
    if (ordinal && gpus_present && std::atoi(std::string(entry).c_str()) >= *gpus_present) return count;
    ++count;
    if (last) return count;
    list.remove_prefix(list.find(',') + 1);
  }
}

std::optional<int> count_gpus_present() {
  const auto count = [](const char* folder, auto&& counts) {
    int found = 0;
    if (DIR* entries = ::opendir(folder)) {
      while (const dirent* entry = ::readdir(entries)) found += counts(std::string_view(entry->d_name));
      ::closedir(entries);
    }
    return found;
  };
  const int listed =
      count("/proc/driver/nvidia/gpus", [](std::string_view name) { return name != "." && name != ".."; });
  const int nodes = count("/dev", [](std::string_view name) {
    constexpr std::string_view prefix = "nvidia";
    return name.starts_with(prefix) && name.size() > prefix.size() &&
           name.find_first_not_of("0123456789", prefix.size()) == std::string_view::npos;
  });
  // A container may list the whole machine and hold nodes for its own GPUs only.
  if (listed > 0 && nodes > 0) return std::min(listed, nodes);
  if (listed + nodes > 0) return listed + nodes;
  return std::nullopt;
}

bool names_python(std::string_view executable_path) {
  const auto slash = executable_path.rfind('/');
  if (slash != std::string_view::npos) executable_path.remove_prefix(slash + 1);
  return executable_path.starts_with("python") || executable_path.starts_with("pypy");
}

void apply_framework_variables() {
  char path[1024];
  const ssize_t length = ::readlink("/proc/self/exe", path, sizeof path);
  if (length <= 0 || !names_python({path, static_cast<std::size_t>(length)})) return;

  const Settings settings = settings_from_environment();
  FrameworkQuestion question{settings.mode, settings.frameworks,
                             [](const char* name) -> const char* { return std::getenv(name); }, std::nullopt};
  if (settings.mode == Mode::ondemand || settings.mode == Mode::prealloc)
    question.gpus_present = count_gpus_present();
  const FrameworkPlan plan = plan_framework_variables(question);
  const std::string marker = plan.marker();
  for (const std::string& name : plan.removed) ::unsetenv(name.c_str());
  for (const auto& [name, value] : plan.set) ::setenv(name.c_str(), value.c_str(), 1);
  if (marker.empty()) {
    ::unsetenv(kFrameworkMarker);
  } else {
    ::setenv(kFrameworkMarker, marker.c_str(), 1);
  }
}

Variables framework_variables_set() {
  const char* marker = std::getenv(kFrameworkMarker);
  return parse_marker(marker == nullptr ? "" : marker);
}

Variables early_framework_variables() {
  constexpr std::array kEarly{kJaxAllocator,
                              kJaxPreallocate,
                              "XLA_PYTHON_CLIENT_MEM_FRACTION",
                              "XLA_CLIENT_MEM_FRACTION",
                              "JAX_PJRT_CLIENT_CREATE_OPTIONS",
                              kTorchAllocator,
                              kTorchAllocatorOld};
  Variables found;
  for (const char* name : kEarly)
    if (const char* value = std::getenv(name)) found.emplace_back(name, value);
  return found;
}

Variables changed_since(const Variables& before, const Variables& now) {
  Variables changed;
  for (const auto& variable : now)
    if (std::find(before.begin(), before.end(), variable) == before.end()) changed.push_back(variable);
  return changed;
}

}  // namespace tidepool
