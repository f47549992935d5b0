// The rules by which framework variables are set, one line a rule.
#include <catch2/catch.hpp>

#include <map>
#include <string>

#include "shim/base/frameworks.hpp"

using tidepool::FrameworkChoice;
using tidepool::Mode;

namespace {

// "A=1 B=2" as an environment; "A=" is set and empty.
std::map<std::string, std::string> environment_of(std::string_view text) {
  std::map<std::string, std::string> found;
  while (!text.empty()) {
    const std::string_view entry = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(text.size(), entry.size() + 1));
    found.emplace(entry.substr(0, entry.find('=')), entry.substr(entry.find('=') + 1));
  }
  return found;
}

tidepool::FrameworkPlan plan(Mode mode, FrameworkChoice choice, std::string_view environment,
                             std::optional<int> gpus) {
  const auto variables = environment_of(environment);
  return tidepool::plan_framework_variables({mode, choice,
                                             [&](const char* name) -> const char* {
                                               const auto found = variables.find(name);
                                               return found == variables.end() ? nullptr
                                                                               : found->second.c_str();
                                             },
                                             gpus});
}

const std::string kJax = "XLA_PYTHON_CLIENT_ALLOCATOR=cuda_async";
const std::string kGrow = "XLA_PYTHON_CLIENT_PREALLOCATE=false";
const std::string kTf = "TF_FORCE_GPU_ALLOW_GROWTH=true";
const std::string kTfAsync = "TF_GPU_ALLOCATOR=cuda_malloc_async";
const std::string kTorch = "PYTORCH_ALLOC_CONF=backend:cudaMallocAsync";
const std::string kBoth = kJax + ";" + kTf;
const std::string kAll = kJax + ";" + kTf + ";" + kTfAsync + ";" + kTorch;
const std::string kMarkedBoth = "TIDEPOOL_FRAMEWORK_VARIABLES=" + kBoth;

}  // namespace

TEST_CASE("which framework variables are set") {
  struct Row {
    const char* rule;
    Mode mode;
    FrameworkChoice choice;
    std::string environment;
    std::optional<int> gpus;
    std::string set;
  };
  constexpr auto automatic = FrameworkChoice::automatic;
  constexpr auto all = FrameworkChoice::all;
  constexpr auto keep = FrameworkChoice::keep;
  const Row rows[] = {
      {"one GPU", Mode::ondemand, automatic, "", 1, kBoth},
      {"one GPU, preallocated", Mode::prealloc, automatic, "", 1, kBoth},
      {"an unknown number of GPUs counts as one", Mode::ondemand, automatic, "", {}, kBoth},
      {"managed sets nothing", Mode::managed, automatic, "", 1, ""},
      {"passthrough sets nothing", Mode::passthrough, automatic, "", 1, ""},
      {"off sets nothing", Mode::off, automatic, "", 1, ""},
      {"off sets nothing, whatever the choice", Mode::off, all, "", 1, ""},
      {"keep sets nothing", Mode::ondemand, keep, "", 1, ""},

      {"several GPUs: JAX's growing pool", Mode::ondemand, automatic, "", 2, kGrow + ";" + kTf},
      {"several GPUs, preallocated: JAX's own", Mode::prealloc, automatic, "", 2, kTf},
      {"one of several is visible", Mode::ondemand, automatic, "CUDA_VISIBLE_DEVICES=1", 2, kBoth},
      {"two are visible", Mode::ondemand, automatic, "CUDA_VISIBLE_DEVICES=0,1", 2, kGrow + ";" + kTf},
      {"two UUIDs", Mode::ondemand, automatic, "CUDA_VISIBLE_DEVICES=GPU-1,GPU-2", {}, kGrow + ";" + kTf},
      {"none visible: empty", Mode::ondemand, automatic, "CUDA_VISIBLE_DEVICES=", 2, kTf},
      {"none visible: -1", Mode::ondemand, automatic, "CUDA_VISIBLE_DEVICES=-1", 2, kTf},
      {"none visible, all", Mode::ondemand, all, "CUDA_VISIBLE_DEVICES=-1", 2,
       kTf + ";" + kTfAsync + ";" + kTorch},

      {"user: PREALLOCATE", Mode::ondemand, automatic, "XLA_PYTHON_CLIENT_PREALLOCATE=true", 1, kTf},
      {"user: PREALLOCATE, several GPUs", Mode::ondemand, automatic, kGrow, 2, kTf},
      {"user: ALLOCATOR", Mode::ondemand, automatic, "XLA_PYTHON_CLIENT_ALLOCATOR=platform", 1, kTf},
      {"user: our value, no marker", Mode::ondemand, automatic, kJax, 1, kTf},
      {"user: set to nothing", Mode::ondemand, automatic, "XLA_PYTHON_CLIENT_ALLOCATOR=", 1, kTf},
      {"user: fraction", Mode::ondemand, automatic, "XLA_PYTHON_CLIENT_MEM_FRACTION=.5", 1, kTf},
      {"user: fraction, other name", Mode::ondemand, automatic, "XLA_CLIENT_MEM_FRACTION=.5", 1, kTf},
      {"user: create options", Mode::ondemand, automatic, "JAX_PJRT_CLIENT_CREATE_OPTIONS=a:b", 1, kTf},
      {"user: unified memory", Mode::ondemand, automatic, "TF_FORCE_UNIFIED_MEMORY=1", 1, kTf},
      {"user: collective memory", Mode::ondemand, automatic, "XLA_PYTHON_CLIENT_COLLECTIVE_MEM_SIZE_MB=64", 1,
       kTf},
      {"user: prealloc of the pool", Mode::ondemand, automatic, "TF_CUDA_MALLOC_ASYNC_SUPPORTED_PREALLOC=1",
       1, kTf},
      {"user: host memory", Mode::ondemand, automatic, "XLA_PJRT_GPU_HOST_MEMORY_LIMIT_GB=8", 1, kTf},
      {"user: host memory, early", Mode::ondemand, automatic, "XLA_PJRT_GPU_HOST_MEMORY_PREALLOCATE=1", 1,
       kTf},
      {"XLA_FLAGS is not about memory", Mode::ondemand, automatic, "XLA_FLAGS=--xla_foo", 1, kBoth},
      {"user: TF growth", Mode::ondemand, automatic, "TF_FORCE_GPU_ALLOW_GROWTH=false", 1, kJax},
      {"user: TF allocator", Mode::ondemand, automatic, "TF_GPU_ALLOCATOR=bfc", 1, kJax},

      {"ranks: SLURM_NTASKS", Mode::ondemand, automatic, "SLURM_NTASKS=2", 1, ""},
      {"ranks: SLURM_NPROCS", Mode::ondemand, automatic, "SLURM_NPROCS=2", 1, ""},
      {"ranks: a step of Slurm", Mode::ondemand, automatic, "SLURM_STEP_NUM_TASKS=2", 1, ""},
      {"one task of Slurm", Mode::ondemand, automatic, "SLURM_NTASKS=1 SLURM_PROCID=0", 1, kBoth},
      {"an empty count", Mode::ondemand, automatic, "SLURM_NTASKS=", 1, kBoth},
      {"ranks: JAX coordinator", Mode::ondemand, automatic, "JAX_COORDINATOR_ADDRESS=h:1", 1, ""},
      {"ranks: coordinator", Mode::ondemand, automatic, "COORDINATOR_ADDRESS=h:1", 1, ""},
      {"ranks: several slices", Mode::ondemand, automatic, "MEGASCALE_COORDINATOR_ADDRESS=h:1", 1, ""},
      {"ranks: JAX processes", Mode::ondemand, automatic, "JAX_NUM_PROCESSES=8", 1, ""},
      {"ranks: TensorFlow cluster", Mode::ondemand, automatic, "TF_CONFIG={}", 1, ""},
      {"ranks: Open MPI", Mode::ondemand, automatic, "OMPI_COMM_WORLD_SIZE=4", 1, ""},
      {"ranks: PMI", Mode::ondemand, automatic, "PMI_SIZE=4", 1, ""},
      {"ranks: Hydra", Mode::ondemand, automatic, "MPI_LOCALNRANKS=4", 1, ""},
      {"ranks: MVAPICH", Mode::ondemand, automatic, "MV2_COMM_WORLD_SIZE=4", 1, ""},
      {"ranks: Flux", Mode::ondemand, automatic, "FLUX_JOB_SIZE=4", 1, ""},
      {"ranks: jsrun", Mode::ondemand, automatic, "JSM_NAMESPACE_SIZE=4", 1, ""},
      {"ranks: Horovod", Mode::ondemand, automatic, "HOROVOD_SIZE=4", 1, ""},
      {"ranks: torchrun", Mode::ondemand, automatic, "WORLD_SIZE=4", 1, ""},
      {"ranks: PMIx", Mode::ondemand, automatic, "PMIX_RANK=0", 1, ""},
      {"PMIx with one task", Mode::ondemand, automatic, "PMIX_RANK=0 SLURM_NTASKS=1", 1, kBoth},

      {"all", Mode::ondemand, all, "", 1, kAll},
      {"all: several GPUs", Mode::ondemand, all, "", 4, kAll},
      {"all: ranks", Mode::prealloc, all, "SLURM_NTASKS=4", 1, kAll},
      {"all: other memory variables", Mode::ondemand, all, "XLA_PYTHON_CLIENT_PREALLOCATE=true", 1, kAll},
      {"all: user's JAX", Mode::ondemand, all, "XLA_PYTHON_CLIENT_ALLOCATOR=bfc", 1,
       kTf + ";" + kTfAsync + ";" + kTorch},
      {"all: user's TF", Mode::ondemand, all, "TF_GPU_ALLOCATOR=bfc", 1, kJax + ";" + kTf + ";" + kTorch},
      {"all: user's TF growth", Mode::ondemand, all, "TF_FORCE_GPU_ALLOW_GROWTH=0", 1,
       kJax + ";" + kTfAsync + ";" + kTorch},
      {"all: user's PyTorch", Mode::ondemand, all, "PYTORCH_ALLOC_CONF=a:b", 1,
       kJax + ";" + kTf + ";" + kTfAsync},
      {"all: user's PyTorch, old name", Mode::ondemand, all, "PYTORCH_CUDA_ALLOC_CONF=a:b", 1,
       kJax + ";" + kTf + ";" + kTfAsync},

      {"inherited, kept", Mode::ondemand, automatic, kJax + " " + kTf + " " + kMarkedBoth, 1, kBoth},
      {"inherited, removed by someone", Mode::ondemand, automatic, kTf + " " + kMarkedBoth, 1, kBoth},
      {"inherited, then changed by the user", Mode::ondemand, automatic,
       "XLA_PYTHON_CLIENT_ALLOCATOR=bfc " + kTf + " " + kMarkedBoth, 1, kTf},
      {"inherited, user adds a fraction", Mode::ondemand, automatic,
       kJax + " " + kTf + " XLA_CLIENT_MEM_FRACTION=.5 " + kMarkedBoth, 1, kTf},
  };
  for (const Row& row : rows) {
    INFO(row.rule);
    CHECK(plan(row.mode, row.choice, row.environment, row.gpus).marker() == row.set);
  }
}

TEST_CASE("a child undoes what is not its own") {
  struct Row {
    const char* rule;
    Mode mode;
    FrameworkChoice choice;
    std::string environment;
    std::vector<std::string> removed;
  };
  constexpr auto automatic = FrameworkChoice::automatic;
  const std::string inherited = kJax + " " + kTf + " " + kMarkedBoth;
  const std::vector<std::string> both{"XLA_PYTHON_CLIENT_ALLOCATOR", "TF_FORCE_GPU_ALLOW_GROWTH"};
  const Row rows[] = {
      {"off", Mode::off, automatic, inherited, both},
      {"passthrough", Mode::passthrough, automatic, inherited, both},
      {"keep", Mode::ondemand, FrameworkChoice::keep, inherited, both},
      {"a rank of a job", Mode::ondemand, automatic, inherited + " SLURM_NTASKS=2", both},
      {"still wanted", Mode::ondemand, automatic, inherited, {}},
      {"the user's own since",
       Mode::off,
       automatic,
       "XLA_PYTHON_CLIENT_ALLOCATOR=bfc " + kTf + " " + kMarkedBoth,
       {"TF_FORCE_GPU_ALLOW_GROWTH"}},
      {"gone since", Mode::off, automatic, kTf + " " + kMarkedBoth, {"TF_FORCE_GPU_ALLOW_GROWTH"}},
      {"JAX's memory is the user's since",
       Mode::ondemand,
       automatic,
       inherited + " XLA_CLIENT_MEM_FRACTION=.5",
       {"XLA_PYTHON_CLIENT_ALLOCATOR"}},
      {"more GPUs than the parent saw",
       Mode::ondemand,
       automatic,
       inherited + " CUDA_VISIBLE_DEVICES=0,1",
       {"XLA_PYTHON_CLIENT_ALLOCATOR"}},
      {"a marker that names what we never set",
       Mode::off,
       automatic,
       "HOME=/root TIDEPOOL_FRAMEWORK_VARIABLES=HOME=/root",
       {}},
      {"a marker that is no list", Mode::off, automatic, "TIDEPOOL_FRAMEWORK_VARIABLES=;;=x;y", {}},
  };
  for (const Row& row : rows) {
    INFO(row.rule);
    CHECK(plan(row.mode, row.choice, row.environment, {}).removed == row.removed);
  }
}

TEST_CASE("how many GPUs a list leaves visible") {
  struct Row {
    const char* list;
    std::optional<int> present;
    int visible;
  };
  const Row rows[] = {{"", 4, 0},
                      {"-1", 4, 0},
                      {"0", 4, 1},
                      {"0,1,2", 4, 3},
                      {"0,-1,2", 4, 1},
                      {"0,9,1", 2, 1},
                      {"0,9,1", {}, 3},
                      {" 0 , 1 ", 2, 2},
                      {"0,", 2, 1},
                      {"NoDevFiles", 2, 0},
                      {"GPU-8932f937", 2, 1},
                      {"MIG-GPU-1/1/0", 1, 1},
                      {"GPU-a,1", 2, 2},
                      {"99999999999999999999", {}, 0}};
  for (const Row& row : rows) {
    INFO(row.list);
    CHECK(tidepool::count_visible_gpus(row.list, row.present) == row.visible);
  }
}

TEST_CASE("which executables are Python") {
  CHECK(tidepool::names_python("/usr/bin/python3.11"));
  CHECK(tidepool::names_python("/opt/env/bin/pypy3"));
  CHECK(tidepool::names_python("python"));
  CHECK_FALSE(tidepool::names_python("/usr/bin/bash"));
  CHECK_FALSE(tidepool::names_python("/opt/python/bin/bash"));
  CHECK_FALSE(tidepool::names_python(""));
}

TEST_CASE("a process that is not Python is left alone") {
  ::unsetenv(tidepool::kFrameworkMarker);
  tidepool::apply_framework_variables();
  CHECK(std::getenv("TF_FORCE_GPU_ALLOW_GROWTH") == nullptr);
  CHECK(std::getenv(tidepool::kFrameworkMarker) == nullptr);
  CHECK(tidepool::framework_variables_set().empty());

  ::setenv(tidepool::kFrameworkMarker, kMarkedBoth.substr(kMarkedBoth.find('=') + 1).c_str(), 1);
  CHECK(tidepool::framework_variables_set() ==
        tidepool::Variables{{"XLA_PYTHON_CLIENT_ALLOCATOR", "cuda_async"},
                            {"TF_FORCE_GPU_ALLOW_GROWTH", "true"}});
  ::unsetenv(tidepool::kFrameworkMarker);
}
