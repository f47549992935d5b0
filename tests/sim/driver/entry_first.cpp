// The first ABI of the memory entries: addresses and sizes of 32 bits. cuda.h still declares it and
// drivers still export it; cuGetProcAddress gives it for versions before 3020.
//
// Its blocks lie below 4 GiB, with budget like any other (guess: how a driver of 64 bits serves it).
#include <sys/mman.h>

#include "capture.hpp"
#include "entries.hpp"
#include "state.hpp"

namespace sim {
namespace {

CUresult allocate(CUdeviceptr_v1* pointer, std::uint64_t bytes) {
  if (!pointer || !bytes) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock;
  Context* context = nullptr;
  SIM_TRY(current_context(&context));
  SIM_TRY(refuse_unsafe());
  Device& device = *state().devices[static_cast<std::size_t>(context->device)];
  if (!device.charge(Device::footprint(bytes))) return CUDA_ERROR_OUT_OF_MEMORY;
  void* base = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_32BIT, -1, 0);
  if (base == MAP_FAILED) {
    device.discharge(Device::footprint(bytes));
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  *pointer = static_cast<CUdeviceptr_v1>(reinterpret_cast<std::uint64_t>(base));
  state().add_block({.kind = Block::Kind::device,
                     .base = *pointer,
                     .size = bytes,
                     .device = context->device,
                     .context = context,
                     .low = true});
  return CUDA_SUCCESS;
}

unsigned clamped(std::size_t value) { return value > ~0u ? ~0u : static_cast<unsigned>(value); }

}  // namespace

CUresult SIM_ENTRY(cuMemAlloc)(CUdeviceptr_v1* dptr, unsigned int bytesize) {
  return allocate(dptr, bytesize);
}

CUresult SIM_ENTRY(cuMemAllocPitch)(CUdeviceptr_v1* dptr, unsigned int* pPitch, unsigned int WidthInBytes,
                                    unsigned int Height, unsigned int ElementSizeBytes) {
  if (!pPitch || !WidthInBytes || !Height) return CUDA_ERROR_INVALID_VALUE;
  if (ElementSizeBytes != 4 && ElementSizeBytes != 8 && ElementSizeBytes != 16)
    return CUDA_ERROR_INVALID_VALUE;
  const std::uint64_t pitch = round_up(WidthInBytes, 512), bytes = pitch * Height;
  if (bytes > ~0u) return CUDA_ERROR_INVALID_VALUE;
  SIM_TRY(allocate(dptr, bytes));
  *pPitch = static_cast<unsigned>(pitch);
  return CUDA_SUCCESS;
}

CUresult SIM_ENTRY(cuMemFree)(CUdeviceptr_v1 dptr) { return entry::cuMemFree_v2(dptr); }

CUresult SIM_ENTRY(cuMemGetInfo)(unsigned int* free, unsigned int* total) {
  std::size_t wide_free = 0, wide_total = 0;
  if (!free || !total) return CUDA_ERROR_INVALID_VALUE;
  SIM_TRY(entry::cuMemGetInfo_v2(&wide_free, &wide_total));
  *free = clamped(wide_free);
  *total = clamped(wide_total);
  return CUDA_SUCCESS;
}

CUresult SIM_ENTRY(cuDeviceTotalMem)(unsigned int* bytes, CUdevice dev) {
  std::size_t wide = 0;
  if (!bytes) return CUDA_ERROR_INVALID_VALUE;
  SIM_TRY(entry::cuDeviceTotalMem_v2(&wide, dev));
  *bytes = clamped(wide);
  return CUDA_SUCCESS;
}

CUresult SIM_ENTRY(cuMemGetAddressRange)(CUdeviceptr_v1* pbase, unsigned int* psize, CUdeviceptr_v1 dptr) {
  CUdeviceptr base = 0;
  std::size_t size = 0;
  SIM_TRY(entry::cuMemGetAddressRange_v2(&base, &size, dptr));
  if (pbase) *pbase = static_cast<CUdeviceptr_v1>(base);
  if (psize) *psize = clamped(size);
  return CUDA_SUCCESS;
}

CUresult SIM_ENTRY(cuMemAllocHost)(void** pp, unsigned int bytesize) {
  return entry::cuMemAllocHost_v2(pp, bytesize);
}

CUresult SIM_ENTRY(cuMemcpyHtoD)(CUdeviceptr_v1 dstDevice, const void* srcHost, unsigned int ByteCount) {
  return entry::cuMemcpyHtoD_v2(dstDevice, srcHost, ByteCount);
}
CUresult SIM_ENTRY(cuMemcpyDtoH)(void* dstHost, CUdeviceptr_v1 srcDevice, unsigned int ByteCount) {
  return entry::cuMemcpyDtoH_v2(dstHost, srcDevice, ByteCount);
}
CUresult SIM_ENTRY(cuMemsetD8)(CUdeviceptr_v1 dstDevice, unsigned char uc, unsigned int N) {
  return entry::cuMemsetD8_v2(dstDevice, uc, N);
}
CUresult SIM_ENTRY(cuMemsetD32)(CUdeviceptr_v1 dstDevice, unsigned int ui, unsigned int N) {
  return entry::cuMemsetD32_v2(dstDevice, ui, N);
}

CUresult SIM_ENTRY(cuArrayCreate)(CUarray* pHandle, const CUDA_ARRAY_DESCRIPTOR_v1* pAllocateArray) {
  if (!pAllocateArray) return CUDA_ERROR_INVALID_VALUE;
  const CUDA_ARRAY_DESCRIPTOR wide{pAllocateArray->Width, pAllocateArray->Height, pAllocateArray->Format,
                                   pAllocateArray->NumChannels};
  return entry::cuArrayCreate_v2(pHandle, &wide);
}
CUresult SIM_ENTRY(cuArray3DCreate)(CUarray* pHandle, const CUDA_ARRAY3D_DESCRIPTOR_v1* pAllocateArray) {
  if (!pAllocateArray) return CUDA_ERROR_INVALID_VALUE;
  const CUDA_ARRAY3D_DESCRIPTOR wide{pAllocateArray->Width,       pAllocateArray->Height,
                                     pAllocateArray->Depth,       pAllocateArray->Format,
                                     pAllocateArray->NumChannels, pAllocateArray->Flags};
  return entry::cuArray3DCreate_v2(pHandle, &wide);
}

}  // namespace sim
