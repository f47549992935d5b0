// Scripted faults: SIM_FAULTS makes the n-th call of an entry fail, pause or kill the process, hides
// entries, and makes the driver an older one. The list is read once, before the first call.
//
//   cuMemAlloc_v2@3=2              the third call of this process answers error 2 (also by name)
//   cuMemCreate@2+=CUDA_ERROR_OUT_OF_MEMORY     the second and all later ones; @* is @1+
//   cuMemFree_v2@1=pause:500       waits 500 ms, then does its work
//   cuMemMap@4=kill                SIGKILL on the way in
//   hide:cuCtxRecordEvent          neither exported nor resolved
//   version:12020                  cuDriverGetVersion says so; what came later is hidden
#pragma once
#include <cuda.h>

#include <cstdint>

namespace sim {

// What a call is to do instead of its work; SUCCESS: its work. May not return (kill).
CUresult fault_of(int entry, std::uint64_t call);
bool faults_asked();
bool hides_asked();

bool hidden(const char* symbol, int since);
int driver_version();

}  // namespace sim
