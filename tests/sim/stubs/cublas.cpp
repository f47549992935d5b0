// The double of cuBLAS: a handle and a version; products of matrices are not computed.
#include <cstddef>

#include "answer.hpp"

namespace {
int handle;
}  // namespace

SIM_API int cublasCreate_v2(void** out) {
  *out = &handle;
  return 0;
}
SIM_API int cublasGetVersion_v2(void*, int* version) {
  *version = SIM_VERSION;
  return 0;
}
SIM_PROPERTY(cublasGetProperty)
SIM_API std::size_t cublasGetCudartVersion() { return SIM_MAJOR * 1000; }
SIM_API const char* cublasGetStatusString(int status) {
  return status ? "CUBLAS_STATUS_ERROR" : "CUBLAS_STATUS_SUCCESS";
}
SIM_API const char* cublasGetStatusName(int status) { return cublasGetStatusString(status); }
SIM_NOTHING(cublasDestroy_v2)
SIM_NOTHING(cublasSetStream_v2)
SIM_NOTHING(cublasSetWorkspace_v2)
SIM_NOTHING(cublasSetPointerMode_v2)
SIM_NOTHING(cublasSetMathMode)
SIM_NOTHING(cublasSetAtomicsMode)
SIM_NOTHING(cublasSgemm_v2)
SIM_NOTHING(cublasDgemm_v2)
SIM_NOTHING(cublasGemmEx)
SIM_NOTHING(cublasGemmBatchedEx)
SIM_NOTHING(cublasGemmStridedBatchedEx)
SIM_NOTHING(cublasSgemmBatched)
SIM_NOTHING(cublasSgemmStridedBatched)
SIM_API int cublasGetStream_v2(void*, void** stream) {
  *stream = nullptr;
  return 0;
}
SIM_API int cublasGetPointerMode_v2(void*, int* mode) {
  *mode = 0;
  return 0;
}
SIM_API int cublasGetMathMode(void*, int* mode) {
  *mode = 0;
  return 0;
}
