// The double of cuDNN 9: enough that XLA takes it for present. Without a handle XLA fails every
// compilation ("dnn_support != nullptr"), and it asks for 9.10.1 or newer.
#include <cstddef>

#include "answer.hpp"

namespace {
constexpr std::size_t version = SIM_VERSION;
int handle;
}  // namespace

SIM_API std::size_t cudnnGetVersion() { return version; }
SIM_API std::size_t cudnnGetMaxDeviceVersion() { return version; }
SIM_API std::size_t cudnnGetCudartVersion() { return 13000; }
SIM_API const char* cudnnGetErrorString(int status) {
  return status ? "CUDNN_STATUS_ERROR" : "CUDNN_STATUS_SUCCESS";
}
SIM_PROPERTY(cudnnGetProperty)
SIM_API int cudnnCreate(void** out) {
  *out = &handle;
  return 0;
}
SIM_NOTHING(cudnnDestroy)
SIM_NOTHING(cudnnSetStream)
SIM_API int cudnnGetStream(void*, void** stream) {
  *stream = nullptr;
  return 0;
}
