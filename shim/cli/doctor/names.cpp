// Names of environment variables that decide about GPU memory, and those that look as if they were meant.
#include "shim/cli/doctor/names.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "shim/base/settings.hpp"

namespace tidepool::cli::doctor {
namespace {

// Those that decide, and the neighbours of like name that must not be taken for a mistake.
constexpr std::array kKnown{"CUDA_DEVICE_ORDER",
                            "CUDA_VISIBLE_DEVICES",
                            "CUDA_CACHE_DISABLE",
                            "CUDA_LAUNCH_BLOCKING",
                            "CUDA_MPS_PIPE_DIRECTORY",
                            "CUDA_MPS_LOG_DIRECTORY",
                            "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT",
                            "CUPY_GPU_MEMORY_LIMIT",
                            "JAX_PJRT_CLIENT_CREATE_OPTIONS",
                            "JAX_PLATFORMS",
                            "JAX_PLATFORM_NAME",
                            "PYTORCH_ALLOC_CONF",
                            "PYTORCH_CUDA_ALLOC_CONF",
                            "PYTORCH_HIP_ALLOC_CONF",
                            "PYTORCH_NO_CUDA_MEMORY_CACHING",
                            "TF_CUDA_MALLOC_ASYNC_SUPPORTED_PREALLOC",
                            "TF_ENABLE_GPU_GARBAGE_COLLECTION",
                            "TF_FORCE_GPU_ALLOW_GROWTH",
                            "TF_FORCE_UNIFIED_MEMORY",
                            "TF_GPU_ALLOCATOR",
                            "TF_GPU_THREAD_MODE",
                            "TF_GPU_THREAD_COUNT",
                            "XLA_CLIENT_MEM_FRACTION",
                            "XLA_PYTHON_CLIENT_ALLOCATOR",
                            "XLA_PYTHON_CLIENT_COLLECTIVE_MEM_SIZE_MB",
                            "XLA_PYTHON_CLIENT_MEM_FRACTION",
                            "XLA_PYTHON_CLIENT_PREALLOCATE",
                            "XLA_PYTHON_CLIENT_USE_TFRT_GPU_CLIENT",
                            "XLA_PYTHON_CLIENT_ABORT_COLLECTIVES_ON_FAILURE",
                            "XLA_PJRT_GPU_HOST_MEMORY_LIMIT_GB",
                            "XLA_PJRT_GPU_HOST_MEMORY_PREALLOCATE"};

// Read by tidepool, or set by it, and in no table of settings.
constexpr std::array kTidepoolOthers{"TIDEPOOL_LIBRARY", "TIDEPOOL_RUN", "TIDEPOOL_FRAMEWORK_VARIABLES"};

constexpr int kMostEdits = 2;
constexpr std::size_t kShortest = 11;  // of shorter names two edits make another word

std::vector<std::string_view> known_names() {
  std::vector<std::string_view> names(kKnown.begin(), kKnown.end());
  names.insert(names.end(), kTidepoolOthers.begin(), kTidepoolOthers.end());
  for (const SettingRow& row : setting_rows()) names.emplace_back(row.variable);
  return names;
}

// XLA_PYTHON_MEM_FRACTION is XLA_PYTHON_CLIENT_MEM_FRACTION without a word.
bool lacks_one_word(std::string_view name, std::string_view whole) {
  for (std::size_t start = 0; start < whole.size();) {
    const std::size_t end = std::min(whole.find('_', start), whole.size());
    std::string shorter(whole.substr(0, start));
    shorter += end < whole.size() ? whole.substr(end + 1) : std::string_view();
    if (shorter == name) return true;
    start = end + 1;
  }
  return false;
}

}  // namespace

int edit_distance(std::string_view one, std::string_view other) {
  std::vector<std::vector<int>> cost(one.size() + 1, std::vector<int>(other.size() + 1));
  for (std::size_t i = 0; i <= one.size(); ++i)
    for (std::size_t j = 0; j <= other.size(); ++j) {
      if (i == 0 || j == 0) {
        cost[i][j] = static_cast<int>(i + j);
        continue;
      }
      const int change = one[i - 1] == other[j - 1] ? 0 : 1;
      cost[i][j] = std::min({cost[i - 1][j] + 1, cost[i][j - 1] + 1, cost[i - 1][j - 1] + change});
      if (i > 1 && j > 1 && one[i - 1] == other[j - 2] && one[i - 2] == other[j - 1])
        cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
    }
  return cost[one.size()][other.size()];
}

std::string probably_meant(std::string_view name) {
  const std::vector<std::string_view> known = known_names();
  if (name.size() < kShortest || std::find(known.begin(), known.end(), name) != known.end()) return "";
  std::string_view nearest;
  int fewest = kMostEdits + 1;
  for (const std::string_view candidate : known) {
    const int edits = lacks_one_word(name, candidate) && name.size() >= kShortest + 4
                          ? kMostEdits
                          : edit_distance(name, candidate);
    if (edits < fewest) fewest = edits, nearest = candidate;
  }
  return std::string(nearest);
}

}  // namespace tidepool::cli::doctor
