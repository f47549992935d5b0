// SIM_NVML: questions that NVML answers as on another machine, comma-separated.
//
//   hide-processes               lists are empty, as in a container with a pid namespace of its own; the
//                                memory still counts as used
//   process-memory=unavailable   as under Windows' driver model (WSL): NVML_VALUE_NOT_AVAILABLE
//   compute-mode=0..3, virtualization=0..4    NVML's numbers; nothing is enforced
//   ENTRY=CODE                   that entry answers this error, such as nvmlInit_v2=9
#pragma once

namespace sim {

struct NvmlAnswers {
  bool processes_hidden = false;
  bool process_memory_unavailable = false;
  unsigned compute_mode = 0;
  unsigned virtualization = 0;
};

const NvmlAnswers& nvml_answers();

// The error that an entry is to answer; 0: none.
int nvml_fault(const char* entry);

}  // namespace sim
