// cuMemcpy in its many forms. Each plans a checked copy and submits it; the synchronous ones run
// on the default stream.
#include "capture.hpp"
#include "copy.hpp"
#include "entries.hpp"
#include "state.hpp"

namespace sim {
namespace {

std::uint64_t address(const void* pointer) { return reinterpret_cast<std::uint64_t>(pointer); }

CUresult run(CUstream on, const std::function<CUresult(std::function<void()>*)>& plan) {
  Lock lock;
  Stream* stream = nullptr;
  SIM_TRY(find_stream(on, &stream));
  std::function<void()> work;
  SIM_TRY(plan(&work));
  return submit(lock, stream, CU_GRAPH_NODE_TYPE_MEMCPY, std::move(work));
}

CUresult linear(CUstream on, CUmemorytype to_type, std::uint64_t to, CUmemorytype from_type,
                std::uint64_t from, std::size_t bytes) {
  return run(on, [&](std::function<void()>* work) {
    return plan_copy(Box{to_type, to, 0, 0}, Box{from_type, from, 0, 0}, bytes, 1, 1, work);
  });
}

CUresult plane(CUstream on, const CUDA_MEMCPY2D* copy) {
  if (!copy) return CUDA_ERROR_INVALID_VALUE;
  CUDA_MEMCPY3D box{};
  box.srcXInBytes = copy->srcXInBytes;
  box.srcY = copy->srcY;
  box.srcMemoryType = copy->srcMemoryType;
  box.srcHost = copy->srcHost;
  box.srcDevice = copy->srcDevice;
  box.srcPitch = copy->srcPitch ? copy->srcPitch : copy->WidthInBytes;
  box.dstXInBytes = copy->dstXInBytes;
  box.dstY = copy->dstY;
  box.dstMemoryType = copy->dstMemoryType;
  box.dstHost = copy->dstHost;
  box.dstDevice = copy->dstDevice;
  box.dstPitch = copy->dstPitch ? copy->dstPitch : copy->WidthInBytes;
  box.WidthInBytes = copy->WidthInBytes;
  box.Height = copy->Height;
  box.Depth = 1;
  return run(on, [&](std::function<void()>* work) { return plan_copy(box, work); });
}

CUresult volume(CUstream on, const CUDA_MEMCPY3D* copy) {
  if (!copy) return CUDA_ERROR_INVALID_VALUE;
  return run(on, [&](std::function<void()>* work) { return plan_copy(*copy, work); });
}

constexpr CUmemorytype device = CU_MEMORYTYPE_DEVICE, host = CU_MEMORYTYPE_HOST,
                       unified = CU_MEMORYTYPE_UNIFIED;

}  // namespace

CUresult SIM_ENTRY(cuMemcpy)(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount) {
  return linear(nullptr, unified, dst, unified, src, ByteCount);
}
CUresult SIM_ENTRY(cuMemcpyAsync)(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount, CUstream hStream) {
  return linear(hStream, unified, dst, unified, src, ByteCount);
}
CUresult SIM_ENTRY(cuMemcpyHtoD_v2)(CUdeviceptr dstDevice, const void* srcHost, size_t ByteCount) {
  return linear(nullptr, device, dstDevice, host, address(srcHost), ByteCount);
}
CUresult SIM_ENTRY(cuMemcpyHtoDAsync_v2)(CUdeviceptr dstDevice, const void* srcHost, size_t ByteCount,
                                         CUstream hStream) {
  return linear(hStream, device, dstDevice, host, address(srcHost), ByteCount);
}
CUresult SIM_ENTRY(cuMemcpyDtoH_v2)(void* dstHost, CUdeviceptr srcDevice, size_t ByteCount) {
  return linear(nullptr, host, address(dstHost), device, srcDevice, ByteCount);
}
CUresult SIM_ENTRY(cuMemcpyDtoHAsync_v2)(void* dstHost, CUdeviceptr srcDevice, size_t ByteCount,
                                         CUstream hStream) {
  return linear(hStream, host, address(dstHost), device, srcDevice, ByteCount);
}
CUresult SIM_ENTRY(cuMemcpyDtoD_v2)(CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount) {
  return linear(nullptr, device, dstDevice, device, srcDevice, ByteCount);
}
CUresult SIM_ENTRY(cuMemcpyDtoDAsync_v2)(CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount,
                                         CUstream hStream) {
  return linear(hStream, device, dstDevice, device, srcDevice, ByteCount);
}
CUresult SIM_ENTRY(cuMemcpyPeer)(CUdeviceptr dstDevice, CUcontext, CUdeviceptr srcDevice, CUcontext,
                                 size_t ByteCount) {
  return linear(nullptr, device, dstDevice, device, srcDevice, ByteCount);
}
CUresult SIM_ENTRY(cuMemcpyPeerAsync)(CUdeviceptr dstDevice, CUcontext, CUdeviceptr srcDevice, CUcontext,
                                      size_t ByteCount, CUstream hStream) {
  return linear(hStream, device, dstDevice, device, srcDevice, ByteCount);
}
CUresult SIM_ENTRY(cuMemcpy2D_v2)(const CUDA_MEMCPY2D* pCopy) { return plane(nullptr, pCopy); }
CUresult SIM_ENTRY(cuMemcpy2DUnaligned_v2)(const CUDA_MEMCPY2D* pCopy) { return plane(nullptr, pCopy); }
CUresult SIM_ENTRY(cuMemcpy2DAsync_v2)(const CUDA_MEMCPY2D* pCopy, CUstream hStream) {
  return plane(hStream, pCopy);
}
CUresult SIM_ENTRY(cuMemcpy3D_v2)(const CUDA_MEMCPY3D* pCopy) { return volume(nullptr, pCopy); }
CUresult SIM_ENTRY(cuMemcpy3DAsync_v2)(const CUDA_MEMCPY3D* pCopy, CUstream hStream) {
  return volume(hStream, pCopy);
}

}  // namespace sim
