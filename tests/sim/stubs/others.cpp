// The doubles of the libraries that programs open but need nothing of to start: cuFFT,
// cuSPARSE, cuSOLVER, cuRAND. Versions and handles only.
#include "answer.hpp"

namespace {
int handle;
}  // namespace

#define SIM_HANDLE(name)         \
  SIM_API int name(void** out) { \
    *out = &handle;              \
    return 0;                    \
  }

SIM_API int cufftGetVersion(int* version) {
  *version = SIM_VERSION;
  return 0;
}
SIM_PROPERTY(cufftGetProperty)
SIM_HANDLE(cusparseCreate)
SIM_NOTHING(cusparseDestroy)
SIM_NOTHING(cusparseSetStream)
SIM_PROPERTY(cusparseGetProperty)
SIM_API int cusparseGetVersion(void*, int* version) {
  *version = SIM_VERSION;
  return 0;
}
SIM_HANDLE(cusolverDnCreate)
SIM_NOTHING(cusolverDnDestroy)
SIM_NOTHING(cusolverDnSetStream)
SIM_PROPERTY(cusolverGetProperty)
SIM_HANDLE(cusolverSpCreate)
SIM_NOTHING(cusolverSpDestroy)
