// cuMemset in its many forms, and the 32 and 64 bit writes that streams can do.
#include "capture.hpp"
#include "copy.hpp"
#include "entries.hpp"
#include "state.hpp"

namespace sim {
namespace {

CUresult fill(CUstream on, CUdeviceptr to, std::size_t pitch, unsigned value, unsigned element,
              std::size_t width, std::size_t height) {
  Lock lock;
  Stream* stream = nullptr;
  SIM_TRY(find_stream(on, &stream));
  std::function<void()> work;
  SIM_TRY(plan_fill(to, pitch, value, element, width, height, &work));
  return submit(lock, stream, CU_GRAPH_NODE_TYPE_MEMSET, std::move(work));
}

template <typename T>
CUresult write_value(CUstream on, CUdeviceptr to, T value) {
  Lock lock;
  Stream* stream = nullptr;
  SIM_TRY(find_stream(on, &stream));
  const Block* block = state().find_block(to);
  const bool host = block && (block->kind == Block::Kind::host || block->kind == Block::Kind::registered);
  if (to % sizeof(T) || (!host && !device_range(to, sizeof(T)))) return CUDA_ERROR_INVALID_VALUE;
  return submit(lock, stream, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP,
                [=] { __atomic_store_n(reinterpret_cast<T*>(to), value, __ATOMIC_RELEASE); });
}

}  // namespace

CUresult SIM_ENTRY(cuMemsetD8_v2)(CUdeviceptr dstDevice, unsigned char uc, size_t N) {
  return fill(nullptr, dstDevice, 0, uc, 1, N, 1);
}
CUresult SIM_ENTRY(cuMemsetD16_v2)(CUdeviceptr dstDevice, unsigned short us, size_t N) {
  return fill(nullptr, dstDevice, 0, us, 2, N, 1);
}
CUresult SIM_ENTRY(cuMemsetD32_v2)(CUdeviceptr dstDevice, unsigned int ui, size_t N) {
  return fill(nullptr, dstDevice, 0, ui, 4, N, 1);
}
CUresult SIM_ENTRY(cuMemsetD8Async)(CUdeviceptr dstDevice, unsigned char uc, size_t N, CUstream hStream) {
  return fill(hStream, dstDevice, 0, uc, 1, N, 1);
}
CUresult SIM_ENTRY(cuMemsetD16Async)(CUdeviceptr dstDevice, unsigned short us, size_t N, CUstream hStream) {
  return fill(hStream, dstDevice, 0, us, 2, N, 1);
}
CUresult SIM_ENTRY(cuMemsetD32Async)(CUdeviceptr dstDevice, unsigned int ui, size_t N, CUstream hStream) {
  return fill(hStream, dstDevice, 0, ui, 4, N, 1);
}
CUresult SIM_ENTRY(cuMemsetD2D8_v2)(CUdeviceptr dstDevice, size_t dstPitch, unsigned char uc, size_t Width,
                                    size_t Height) {
  return fill(nullptr, dstDevice, dstPitch, uc, 1, Width, Height);
}
CUresult SIM_ENTRY(cuMemsetD2D16_v2)(CUdeviceptr dstDevice, size_t dstPitch, unsigned short us, size_t Width,
                                     size_t Height) {
  return fill(nullptr, dstDevice, dstPitch, us, 2, Width, Height);
}
CUresult SIM_ENTRY(cuMemsetD2D32_v2)(CUdeviceptr dstDevice, size_t dstPitch, unsigned int ui, size_t Width,
                                     size_t Height) {
  return fill(nullptr, dstDevice, dstPitch, ui, 4, Width, Height);
}
CUresult SIM_ENTRY(cuMemsetD2D8Async)(CUdeviceptr dstDevice, size_t dstPitch, unsigned char uc, size_t Width,
                                      size_t Height, CUstream hStream) {
  return fill(hStream, dstDevice, dstPitch, uc, 1, Width, Height);
}
CUresult SIM_ENTRY(cuMemsetD2D16Async)(CUdeviceptr dstDevice, size_t dstPitch, unsigned short us,
                                       size_t Width, size_t Height, CUstream hStream) {
  return fill(hStream, dstDevice, dstPitch, us, 2, Width, Height);
}
CUresult SIM_ENTRY(cuMemsetD2D32Async)(CUdeviceptr dstDevice, size_t dstPitch, unsigned int ui, size_t Width,
                                       size_t Height, CUstream hStream) {
  return fill(hStream, dstDevice, dstPitch, ui, 4, Width, Height);
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
