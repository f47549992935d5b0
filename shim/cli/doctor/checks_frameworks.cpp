// The memory variables of TensorFlow and PyTorch, and those of a framework that nobody loaded.
#include <algorithm>
#include <array>
#include <sstream>

#include "shim/cli/doctor/run_checks.hpp"
#include "shim/cli/reports.hpp"

namespace tidepool::cli::doctor {
namespace {

constexpr const char* kGrowth = "TF_FORCE_GPU_ALLOW_GROWTH";
constexpr const char* kTensorFlowAllocator = "TF_GPU_ALLOCATOR";
constexpr const char* kTorch = "PYTORCH_ALLOC_CONF";
constexpr const char* kTorchOld = "PYTORCH_CUDA_ALLOC_CONF";

std::string pair(const char* name, const std::string& value) {
  return std::string(name) + "=" + printable(value);
}

// TensorFlow logs an error and keeps to what the program's configuration says.
void check_growth(const Observation& run, Findings& findings) {
  if (!run.may_have(Framework::tensorflow)) return;
  const std::string* value = run.given(kGrowth);
  if (value == nullptr || *value == "true" || *value == "false") return;
  findings.push_back({Verdict::problem, "tf-growth",
                      pair(kGrowth, *value) + " has no effect: TensorFlow reads only true and false",
                      "TF_FORCE_GPU_ALLOW_GROWTH=true"});
}

void check_tensorflow_allocator(const Observation& run, Findings& findings) {
  const std::string* value = run.given(kTensorFlowAllocator);
  if (value == nullptr || *value == "cuda_malloc_async" || !run.has(Framework::tensorflow)) return;
  findings.push_back({Verdict::problem, "tf-allocator",
                      pair(kTensorFlowAllocator, *value) +
                          " has no effect: TensorFlow knows only cuda_malloc_async "
                          "and says nothing of any other",
                      "TF_GPU_ALLOCATOR=cuda_malloc_async"});
}

// As of PyTorch 2.15: c10/core/AllocatorConfig.h and c10/cuda/CUDAAllocatorConfig.h.
constexpr std::array kTorchKeys{"backend",
                                "expandable_segments",
                                "expandable_segments_reserve",
                                "expandable_segments_reserve_by_class",
                                "garbage_collection_threshold",
                                "graph_capture_record_stream_reuse",
                                "large_segment_size_mb",
                                "max_non_split_rounding_mb",
                                "max_split_size_mb",
                                "per_process_memory_fraction",
                                "pinned_free_catch_all",
                                "pinned_max_cached_size_mb",
                                "pinned_max_round_threshold_mb",
                                "pinned_num_register_threads",
                                "pinned_reserve_segment_size_mb",
                                "pinned_use_background_threads",
                                "pinned_use_cuda_host_register",
                                "pinned_use_hip_host_register",
                                "release_lock_on_cudamalloc",
                                "release_lock_on_hipmalloc",
                                "roundup_power2_divisions",
                                "throw_on_cudamalloc_oom"};

struct TorchOption {
  std::string key;
  std::string value;  // empty: there was no colon
};

// A list in brackets holds commas and colons of its own.
std::vector<TorchOption> torch_options(const std::string& text) {
  std::vector<TorchOption> options;
  int depth = 0;
  std::string part;
  const auto take = [&] {
    part.erase(std::remove(part.begin(), part.end(), ' '), part.end());
    const auto colon = part.find(':');
    if (!part.empty())
      options.push_back({part.substr(0, colon), colon == std::string::npos ? "" : part.substr(colon + 1)});
    part.clear();
  };
  for (const char letter : text) {
    if (letter == '[') ++depth;
    if (letter == ']') --depth;
    if (letter == ',' && depth == 0)
      take();
    else
      part += letter;
  }
  take();
  return options;
}

void check_torch_option(const char* name, const TorchOption& option, Findings& findings) {
  const bool known = std::find(kTorchKeys.begin(), kTorchKeys.end(), option.key) != kTorchKeys.end();
  if (!known || option.value.empty())
    findings.push_back({Verdict::problem, "torch-option",
                        std::string(name) + ": '" + printable(option.key) +
                            (known ? "' has no value" : "' is no option") +
                            " that PyTorch 2.15 knows: it refuses to start CUDA",
                        "NAME:VALUE,NAME:VALUE, such as expandable_segments:True"});
  else if (option.key == "backend" && option.value != "native" && option.value != "cudaMallocAsync")
    findings.push_back({Verdict::problem, "torch-option",
                        std::string(name) + ": backend:" + printable(option.value) +
                            " is none: PyTorch refuses to start CUDA",
                        "backend:native or backend:cudaMallocAsync, in this spelling"});
}

void check_torch_options(const Observation& run, Findings& findings) {
  if (!run.may_have(Framework::torch)) return;
  for (const char* name : {kTorch, kTorchOld})
    if (const std::string* value = run.given(name))
      for (const TorchOption& option : torch_options(*value)) check_torch_option(name, option, findings);
}

void check_torch_names(const Observation& run, Findings& findings) {
  const std::string* name = run.given(kTorch);
  const std::string* old_name = run.given(kTorchOld);
  if (old_name == nullptr || !run.has(Framework::torch)) return;
  if (name == nullptr)
    findings.push_back({Verdict::ok, "torch-names",
                        "PYTORCH_CUDA_ALLOC_CONF is the older name of PYTORCH_ALLOC_CONF; "
                        "PyTorch still reads it",
                        ""});
  else
    findings.push_back(
        {Verdict::warning, "torch-names",
         pair(kTorchOld, *old_name) + " and " + pair(kTorch, *name) +
             ": CUDA's backend and options are read from the first, and those of the second are lost",
         "put all options into one of them"});
}

struct Owner {
  const char* name;
  Framework framework;
  const char* title;
};
constexpr Owner kOwners[] = {
    {"XLA_PYTHON_CLIENT_ALLOCATOR", Framework::jax, "JAX"},
    {"XLA_PYTHON_CLIENT_PREALLOCATE", Framework::jax, "JAX"},
    {"XLA_PYTHON_CLIENT_MEM_FRACTION", Framework::jax, "JAX"},
    {"XLA_CLIENT_MEM_FRACTION", Framework::jax, "JAX"},
    {"XLA_PYTHON_CLIENT_COLLECTIVE_MEM_SIZE_MB", Framework::jax, "JAX"},
    {"JAX_PJRT_CLIENT_CREATE_OPTIONS", Framework::jax, "JAX"},
    {kGrowth, Framework::tensorflow, "TensorFlow"},
    {kTensorFlowAllocator, Framework::tensorflow, "TensorFlow"},
    {"TF_ENABLE_GPU_GARBAGE_COLLECTION", Framework::tensorflow, "TensorFlow"},
    {kTorch, Framework::torch, "PyTorch"},
    {kTorchOld, Framework::torch, "PyTorch"},
    {"CUPY_GPU_MEMORY_LIMIT", Framework::cupy, "CuPy"},
};

// Only where some framework was seen: of a program too short to be looked at nothing is known.
void check_unused(const Observation& run, Findings& findings) {
  if (run.loaded.empty()) return;
  for (const Owner& owner : kOwners) {
    const std::string* value = run.given(owner.name);
    if (value == nullptr || run.has(owner.framework)) continue;
    const bool said = std::string_view(owner.name) == kTensorFlowAllocator && run.has(Framework::jax);
    if (said) continue;
    findings.push_back({Verdict::warning, "unused",
                        pair(owner.name, *value) + " has no effect: " + owner.title + " was not loaded", ""});
  }
}

constexpr std::array<RunCheck, 5> kChecks{check_growth, check_tensorflow_allocator, check_torch_options,
                                          check_torch_names, check_unused};

}  // namespace

std::span<const RunCheck> other_checks() { return kChecks; }

}  // namespace tidepool::cli::doctor
