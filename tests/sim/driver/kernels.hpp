// Kernels of the simulator's own, which do read and write memory when their turn comes: for programs
// that test what happens to memory in use. Foreign kernels compute nothing.
//
// A module of theirs is a text, as cuModuleLoadData takes it:
//
//   //tidepool-sim
//   kernel sim_fill
//   kernel slow_add = sim_add 5000000
//
// A line names a kernel, of which kind it is if it has a name of its own, and the ns it takes.
#pragma once
#include <memory>
#include <string>

#include "context.hpp"

namespace sim {

struct OwnKernel {
  const char* name;
  unsigned words;   // 8 bytes of parameters each
  unsigned output;  // how many of them, from the first, are addresses written to
  unsigned inputs;  // how many after those are addresses read from
};

// Whether an image is such a text, and its kernels; false if a line cannot be understood.
bool is_own_module(const void* image);
bool read_own_module(const char* text, Module* module);

// The launch as an operation. Parameters as cuLaunchKernel takes them; INVALID_VALUE without them.
CUresult kernel_work(const Function& function, void** parameters, void** extra, Work* work);

}  // namespace sim
