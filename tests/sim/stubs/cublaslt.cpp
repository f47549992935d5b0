// The double of cublasLt. XLA gives it the products that Triton cannot tile, and takes the first
// algorithm it is offered; without one it fails the compilation ("No supported config found").
#include <cstddef>

#include "answer.hpp"

namespace {

int handle;

// cublasLtMatmulHeuristicResult_t
struct Algorithm {
  unsigned long long data[8];
  std::size_t workspace;
  int status;
  float waves;
  int reserved[4];
};

int give(void** out) {
  *out = &handle;
  return 0;
}

int zeros(void* buffer, std::size_t size, std::size_t* written) {
  for (std::size_t i = 0; buffer && i < size; ++i) static_cast<char*>(buffer)[i] = 0;
  if (written) *written = size;
  return 0;
}

}  // namespace

SIM_PROPERTY(cublasLtGetProperty)
SIM_API std::size_t cublasLtGetVersion() { return SIM_VERSION; }
SIM_API std::size_t cublasLtGetCudartVersion() { return SIM_MAJOR * 1000; }
SIM_API int cublasLtCreate(void** out) { return give(out); }
SIM_NOTHING(cublasLtDestroy)

SIM_API int cublasLtMatmulDescCreate(void** out, int, int) { return give(out); }
SIM_NOTHING(cublasLtMatmulDescDestroy)
SIM_NOTHING(cublasLtMatmulDescSetAttribute)
SIM_API int cublasLtMatmulDescGetAttribute(void*, int, void* buffer, std::size_t size, std::size_t* written) {
  return zeros(buffer, size, written);
}
SIM_API int cublasLtMatrixLayoutCreate(void** out, int, unsigned long long, unsigned long long, long long) {
  return give(out);
}
SIM_NOTHING(cublasLtMatrixLayoutDestroy)
SIM_NOTHING(cublasLtMatrixLayoutSetAttribute)
SIM_API int cublasLtMatrixLayoutGetAttribute(void*, int, void* buffer, std::size_t size,
                                             std::size_t* written) {
  return zeros(buffer, size, written);
}
SIM_API int cublasLtMatmulPreferenceCreate(void** out) { return give(out); }
SIM_NOTHING(cublasLtMatmulPreferenceDestroy)
SIM_NOTHING(cublasLtMatmulPreferenceSetAttribute)
SIM_API int cublasLtMatmulAlgoGetHeuristic(void*, void*, void*, void*, void*, void*, void*, int wanted,
                                           Algorithm* found, int* count) {
  *count = wanted > 0;
  if (wanted > 0) *found = {};
  return 0;
}
SIM_NOTHING(cublasLtMatmul)
SIM_NOTHING(cublasLtMatmulAlgoInit)
SIM_NOTHING(cublasLtMatmulAlgoConfigSetAttribute)
SIM_API int cublasLtMatmulAlgoConfigGetAttribute(void*, int, void* buffer, std::size_t size,
                                                 std::size_t* written) {
  return zeros(buffer, size, written);
}
SIM_API int cublasLtMatmulAlgoCapGetAttribute(void*, int, void* buffer, std::size_t size,
                                              std::size_t* written) {
  return zeros(buffer, size, written);
}
