// cuMemset in its many forms, and the 32 and 64 bit writes that streams can do.
#include "capture.hpp"
#include "copy.hpp"
#include "detector.hpp"
#include "entries.hpp"
#include "state.hpp"

namespace sim {
namespace {

CUresult fill(CUstream on, bool synchronous, CUdeviceptr to, std::size_t pitch, unsigned value,
              unsigned element, std::size_t width, std::size_t height) {
  Lock lock;
  Stream* stream = nullptr;
  SIM_TRY(find_stream(on, &stream));
  Work work;
  SIM_TRY(plan_fill(to, pitch, value, element, width, height, &work));
  const bool captured = static_cast<bool>(stream->capture);
  SIM_TRY(submit(stream, CU_GRAPH_NODE_TYPE_MEMSET, std::move(work)));
  // Even the synchronous ones are asynchronous, but for memory that the host shares (CUDA's "API
  // synchronization behavior").
  if (!synchronous || captured || !waits_for_memory(to)) return CUDA_SUCCESS;
  Context& context = *stream->context;
  timeline().wait(lock, stream->lane, stream->lane->issued);
  return context.error;
}

template <typename T>
CUresult write_value(CUstream on, CUdeviceptr to, T value) {
  Lock lock;
  Stream* stream = nullptr;
  SIM_TRY(find_stream(on, &stream));
  if (to % sizeof(T) || !device_range(to, sizeof(T))) return CUDA_ERROR_INVALID_VALUE;
  Work work;
  work.kind = Work::Kind::fill;
  work.name = "a write of a value";
  work.touches = {{to, sizeof(T), true}};
  work.effect = [=, touches = work.touches](Context& context) {
    if (check_touches(context, "a write of a value", touches, false))
      __atomic_store_n(reinterpret_cast<T*>(to), value, __ATOMIC_RELEASE);
  };
  return submit(stream, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, std::move(work));
}

}  // namespace

CUresult SIM_ENTRY(cuMemsetD8_v2)(CUdeviceptr dstDevice, unsigned char uc, size_t N) {
  return fill(nullptr, true, dstDevice, 0, uc, 1, N, 1);
}
CUresult SIM_ENTRY(cuMemsetD16_v2)(CUdeviceptr dstDevice, unsigned short us, size_t N) {
  return fill(nullptr, true, dstDevice, 0, us, 2, N, 1);
}
CUresult SIM_ENTRY(cuMemsetD32_v2)(CUdeviceptr dstDevice, unsigned int ui, size_t N) {
  return fill(nullptr, true, dstDevice, 0, ui, 4, N, 1);
}
CUresult SIM_ENTRY(cuMemsetD8Async)(CUdeviceptr dstDevice, unsigned char uc, size_t N, CUstream hStream) {
  return fill(hStream, false, dstDevice, 0, uc, 1, N, 1);
}
CUresult SIM_ENTRY(cuMemsetD16Async)(CUdeviceptr dstDevice, unsigned short us, size_t N, CUstream hStream) {
  return fill(hStream, false, dstDevice, 0, us, 2, N, 1);
}
CUresult SIM_ENTRY(cuMemsetD32Async)(CUdeviceptr dstDevice, unsigned int ui, size_t N, CUstream hStream) {
  return fill(hStream, false, dstDevice, 0, ui, 4, N, 1);
}
CUresult SIM_ENTRY(cuMemsetD2D8_v2)(CUdeviceptr dstDevice, size_t dstPitch, unsigned char uc, size_t Width,
                                    size_t Height) {
  return fill(nullptr, true, dstDevice, dstPitch, uc, 1, Width, Height);
}
CUresult SIM_ENTRY(cuMemsetD2D16_v2)(CUdeviceptr dstDevice, size_t dstPitch, unsigned short us, size_t Width,
                                     size_t Height) {
  return fill(nullptr, true, dstDevice, dstPitch, us, 2, Width, Height);
}
CUresult SIM_ENTRY(cuMemsetD2D32_v2)(CUdeviceptr dstDevice, size_t dstPitch, unsigned int ui, size_t Width,
                                     size_t Height) {
  return fill(nullptr, true, dstDevice, dstPitch, ui, 4, Width, Height);
}
CUresult SIM_ENTRY(cuMemsetD2D8Async)(CUdeviceptr dstDevice, size_t dstPitch, unsigned char uc, size_t Width,
                                      size_t Height, CUstream hStream) {
  return fill(hStream, false, dstDevice, dstPitch, uc, 1, Width, Height);
}
CUresult SIM_ENTRY(cuMemsetD2D16Async)(CUdeviceptr dstDevice, size_t dstPitch, unsigned short us,
                                       size_t Width, size_t Height, CUstream hStream) {
  return fill(hStream, false, dstDevice, dstPitch, us, 2, Width, Height);
}
CUresult SIM_ENTRY(cuMemsetD2D32Async)(CUdeviceptr dstDevice, size_t dstPitch, unsigned int ui, size_t Width,
                                       size_t Height, CUstream hStream) {
  return fill(hStream, false, dstDevice, dstPitch, ui, 4, Width, Height);
}
CUresult SIM_ENTRY(cuStreamWriteValue32_v2)(CUstream stream, CUdeviceptr addr, cuuint32_t value,
                                            unsigned int) {
  return write_value(stream, addr, value);
}
CUresult SIM_ENTRY(cuStreamWriteValue64_v2)(CUstream stream, CUdeviceptr addr, cuuint64_t value,
                                            unsigned int) {
  return write_value(stream, addr, value);
}

}  // namespace sim
