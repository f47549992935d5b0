// All that `tidepool doctor` knows of a machine, as plain data: who asks fills it in (gpus.cpp,
// surroundings.cpp), who judges (checks_*.cpp) and who shows it (screen.cpp, as_json.cpp) only reads it.
#pragma once

#include <cstdint>
#include <ctime>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "policies/units.hpp"
#include "shim/cli/library.hpp"
#include "shim/peers/usage.hpp"

namespace tidepool::cli::doctor {

using peers::Answer;
using peers::Holder;
using peers::Memory;

struct Instance {  // of MIG
  std::string uuid;
  Answer<Memory> memory;
  Answer<std::vector<Holder>> holders;
};

enum class ComputeMode : unsigned { shared = 0, exclusive_thread = 1, prohibited = 2, exclusive_process = 3 };

struct Gpu {
  unsigned index = 0;  // NVML's, by PCI address
  std::string name;
  std::string uuid;
  std::optional<unsigned> minor;  // of /dev/nvidiaN
  Answer<Memory> memory;
  Answer<std::vector<Holder>> holders;
  Answer<ComputeMode> compute_mode;
  Answer<bool> mig;
  bool virtual_gpu = false;
  std::vector<Instance> instances;
};

struct Driver {
  std::string problem;  // no NVML, or it does not start; empty: it answers
  int error = 0;        // NVML's, where it is NVML's
  std::string version;
  int cuda = 0;  // 13000
  std::vector<Gpu> gpus;
};

// What a CUDA program finds when it starts: cuInit and cuDeviceGetCount, tried in a child process.
struct CudaStart {
  bool tried = false;
  std::string problem;  // the library does not load, or the child ended; empty: it answered
  int result = 0;       // of cuInit
  int devices = 0;
};

struct ControlGroup {
  std::optional<Bytes> limit;
  Bytes used = 0;
};

struct Surroundings {
  std::map<std::string, std::string> environment;
  std::string container;  // "docker", "podman", "kubernetes", …; empty: none seen
  ControlGroup memory;
  std::optional<Bytes> shared_memory;  // size of /dev/shm
  bool kernel_module = false;          // NVIDIA's is loaded
  std::vector<std::string> nodes;      // of /dev: nvidia0, nvidiactl, nvidia-uvm, dxg
  bool mps_control = false;            // the control daemon's socket is in the pipe directory
  std::string mps_pipes;               // that directory

  const std::string* variable(const std::string& name) const {
    const auto found = environment.find(name);
    return found == environment.end() ? nullptr : &found->second;
  }
};

struct Software {
  std::string tidepool;  // version
  std::string glibc;
  Library library;
  std::string loader_says;           // why ld.so does not take the library; empty: it does
  std::vector<std::string> missing;  // entries of LD_PRELOAD that are no files
  std::string python;                // found on PATH; empty: none
  std::string python_problem;        // why nothing can be put in front of it
  std::vector<std::pair<std::string, std::string>> frameworks;  // name and version, in that Python
};

struct Machine {
  Driver driver;
  CudaStart cuda;
  Surroundings around;
  Software software;
};

Driver ask_driver();
CudaStart try_cuda();
// Below `root`, "" but in tests; the environment is this process's.
Surroundings look_around(const std::string& root);
Software look_at_software();

}  // namespace tidepool::cli::doctor
