// Exported wrappers: starting the driver, and its own look-up of entries.
#include "shim/hook/lookup_answer.hpp"
#include "shim/hook/passage.hpp"

using namespace tidepool;

#pragma GCC visibility push(default)

CUresult cuInit(unsigned int Flags) {
  const CUresult result = forward<Hook::cuInit>(Flags);
  if (result == CUDA_SUCCESS) Runtime::driver_initialised();
  return result;
}

CUresult cuGetProcAddress(const char* symbol, void** pfn, int cudaVersion, cuuint64_t flags) {
  const CUresult result = forward<Hook::cuGetProcAddress>(symbol, pfn, cudaVersion, flags);
  if (result == CUDA_SUCCESS && pfn != nullptr)
    *pfn = replace_answer(kDriver, symbol, *pfn, cudaVersion, flags);
  return result;
}
CUresult cuGetProcAddress_v2(const char* symbol, void** pfn, int cudaVersion, cuuint64_t flags,
                             CUdriverProcAddressQueryResult* symbolStatus) {
  const CUresult result = forward<Hook::cuGetProcAddress_v2>(symbol, pfn, cudaVersion, flags, symbolStatus);
  if (result == CUDA_SUCCESS && pfn != nullptr)
    *pfn = replace_answer(kDriver, symbol, *pfn, cudaVersion, flags);
  return result;
}

#pragma GCC visibility pop
