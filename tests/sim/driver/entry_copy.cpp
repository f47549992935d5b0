// cuMemcpy in its many forms. Each plans a checked copy and queues it, the synchronous ones on the
// default stream; whether it also waits depends on where the memory lies.
#include "capture.hpp"
#include "copy.hpp"
#include "entries.hpp"
#include "rules.hpp"
#include "state.hpp"

namespace sim {
namespace {

std::uint64_t address(const void* pointer) { return reinterpret_cast<std::uint64_t>(pointer); }

// Sources of more than this are not kept for later: the call waits for the stream and copies (guess:
// the real driver's staging memory is limited).
constexpr std::size_t staging_limit = 64 << 20;

// What may still be going on when the call returns, by CUDA's "API synchronization behavior".
CUresult run(CUstream on, bool synchronous, const std::function<CUresult(Copy*)>& plan) {
  Lock lock;
  Stream* stream = nullptr;
  SIM_TRY(find_stream(on, &stream));
  Copy copy{};
  SIM_TRY(plan(&copy));
  SIM_TRY(refuse_work(stream));
  if (copy.empty()) return submit(stream, CU_GRAPH_NODE_TYPE_MEMCPY, Work{});
  if (stream->capture) return submit(stream, CU_GRAPH_NODE_TYPE_MEMCPY, copy.work());
  const std::shared_ptr<Lane> lane = stream->lane;
  Context& context = *stream->context;
  if (copy.from_kind == MemoryKind::pageable && copy.to_kind == MemoryKind::device &&
      copy.bytes() <= staging_limit) {
    if (synchronous || rules().pageable_synchronises) timeline().wait(lock, lane, lane->issued);
    if (context.error) return context.error;
    timeline().queue(lane, copy.staged_work());
    return CUDA_SUCCESS;
  }
  const Ticket ticket = timeline().queue(lane, copy.work());
  const bool device_only = copy.from_kind == MemoryKind::device && copy.to_kind == MemoryKind::device;
  const bool host_only = copy.from_kind != MemoryKind::device && copy.to_kind != MemoryKind::device;
  const bool pageable = copy.from_kind == MemoryKind::pageable || copy.to_kind == MemoryKind::pageable;
  const bool waits = synchronous
                         ? !device_only || waits_for_memory(copy.to.base) || waits_for_memory(copy.from.base)
                         : pageable || host_only;
  if (waits) timeline().wait(lock, lane, ticket);
  return waits ? context.error : CUDA_SUCCESS;
}

CUresult linear(CUstream on, bool synchronous, CUmemorytype to_type, std::uint64_t to, CUmemorytype from_type,
                std::uint64_t from, std::size_t bytes) {
  return run(on, synchronous, [&](Copy* copy) {
    return plan_copy(Box{to_type, to, 0, 0}, Box{from_type, from, 0, 0}, bytes, 1, 1, copy);
  });
}

CUresult plane(CUstream on, bool synchronous, const CUDA_MEMCPY2D* copy) {
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
  return run(on, synchronous, [&](Copy* planned) { return plan_copy(box, planned); });
}

CUresult volume(CUstream on, bool synchronous, const CUDA_MEMCPY3D* copy) {
  if (!copy) return CUDA_ERROR_INVALID_VALUE;
  return run(on, synchronous, [&](Copy* planned) { return plan_copy(*copy, planned); });
}

constexpr CUmemorytype device = CU_MEMORYTYPE_DEVICE, host = CU_MEMORYTYPE_HOST,
                       unified = CU_MEMORYTYPE_UNIFIED;

}  // namespace

CUresult SIM_ENTRY(cuMemcpy)(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount) {
  return linear(nullptr, true, unified, dst, unified, src, ByteCount);
}
CUresult SIM_ENTRY(cuMemcpyAsync)(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount, CUstream hStream) {
  return linear(hStream, false, unified, dst, unified, src, ByteCount);
}
CUresult SIM_ENTRY(cuMemcpyHtoD_v2)(CUdeviceptr dstDevice, const void* srcHost, size_t ByteCount) {
  return linear(nullptr, true, device, dstDevice, host, address(srcHost), ByteCount);
}
CUresult SIM_ENTRY(cuMemcpyHtoDAsync_v2)(CUdeviceptr dstDevice, const void* srcHost, size_t ByteCount,
                                         CUstream hStream) {
  return linear(hStream, false, device, dstDevice, host, address(srcHost), ByteCount);
}
CUresult SIM_ENTRY(cuMemcpyDtoH_v2)(void* dstHost, CUdeviceptr srcDevice, size_t ByteCount) {
  return linear(nullptr, true, host, address(dstHost), device, srcDevice, ByteCount);
}
CUresult SIM_ENTRY(cuMemcpyDtoHAsync_v2)(void* dstHost, CUdeviceptr srcDevice, size_t ByteCount,
                                         CUstream hStream) {
  return linear(hStream, false, host, address(dstHost), device, srcDevice, ByteCount);
}
CUresult SIM_ENTRY(cuMemcpyDtoD_v2)(CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount) {
  return linear(nullptr, true, device, dstDevice, device, srcDevice, ByteCount);
}
CUresult SIM_ENTRY(cuMemcpyDtoDAsync_v2)(CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount,
                                         CUstream hStream) {
  return linear(hStream, false, device, dstDevice, device, srcDevice, ByteCount);
}
CUresult SIM_ENTRY(cuMemcpyPeer)(CUdeviceptr dstDevice, CUcontext, CUdeviceptr srcDevice, CUcontext,
                                 size_t ByteCount) {
  return linear(nullptr, true, device, dstDevice, device, srcDevice, ByteCount);
}
CUresult SIM_ENTRY(cuMemcpyPeerAsync)(CUdeviceptr dstDevice, CUcontext, CUdeviceptr srcDevice, CUcontext,
                                      size_t ByteCount, CUstream hStream) {
  return linear(hStream, false, device, dstDevice, device, srcDevice, ByteCount);
}
CUresult SIM_ENTRY(cuMemcpy2D_v2)(const CUDA_MEMCPY2D* pCopy) { return plane(nullptr, true, pCopy); }
CUresult SIM_ENTRY(cuMemcpy2DUnaligned_v2)(const CUDA_MEMCPY2D* pCopy) { return plane(nullptr, true, pCopy); }
CUresult SIM_ENTRY(cuMemcpy2DAsync_v2)(const CUDA_MEMCPY2D* pCopy, CUstream hStream) {
  return plane(hStream, false, pCopy);
}
CUresult SIM_ENTRY(cuMemcpy3D_v2)(const CUDA_MEMCPY3D* pCopy) { return volume(nullptr, true, pCopy); }
CUresult SIM_ENTRY(cuMemcpy3DAsync_v2)(const CUDA_MEMCPY3D* pCopy, CUstream hStream) {
  return volume(hStream, false, pCopy);
}

}  // namespace sim
