// Exported wrappers: memory that comes from or goes to others: other APIs, other devices, the network.
#include "shim/hook/passage.hpp"

using namespace tidepool;

#pragma GCC visibility push(default)

CUresult cuImportExternalMemory(CUexternalMemory* extMem_out,
                                const CUDA_EXTERNAL_MEMORY_HANDLE_DESC* memHandleDesc) {
  return forward<Hook::cuImportExternalMemory>(extMem_out, memHandleDesc);
}
CUresult cuExternalMemoryGetMappedBuffer(CUdeviceptr* devPtr, CUexternalMemory extMem,
                                         const CUDA_EXTERNAL_MEMORY_BUFFER_DESC* bufferDesc) {
  return forward<Hook::cuExternalMemoryGetMappedBuffer>(devPtr, extMem, bufferDesc);
}
CUresult cuExternalMemoryGetMappedMipmappedArray(
    CUmipmappedArray* mipmap, CUexternalMemory extMem,
    const CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC* mipmapDesc) {
  return forward<Hook::cuExternalMemoryGetMappedMipmappedArray>(mipmap, extMem, mipmapDesc);
}
CUresult cuDestroyExternalMemory(CUexternalMemory extMem) {
  return forward<Hook::cuDestroyExternalMemory>(extMem);
}
CUresult cuMulticastCreate(CUmemGenericAllocationHandle* mcHandle, const CUmulticastObjectProp* prop) {
  return forward<Hook::cuMulticastCreate>(mcHandle, prop);
}
CUresult cuMulticastAddDevice(CUmemGenericAllocationHandle mcHandle, CUdevice dev) {
  return forward<Hook::cuMulticastAddDevice>(mcHandle, dev);
}
CUresult cuMulticastBindMem(CUmemGenericAllocationHandle mcHandle, size_t mcOffset,
                            CUmemGenericAllocationHandle memHandle, size_t memOffset, size_t size,
                            unsigned long long flags) {
  return serve<Hook::cuMulticastBindMem>(
      [&](Router& router, const Pass& pass) { return router.share_handle(memHandle, pass); }, mcHandle,
      mcOffset, memHandle, memOffset, size, flags);
}
CUresult cuMulticastBindAddr(CUmemGenericAllocationHandle mcHandle, size_t mcOffset, CUdeviceptr memptr,
                             size_t size, unsigned long long flags) {
  return serve<Hook::cuMulticastBindAddr>(
      [&](Router& router, const Pass& pass) { return router.share_range(memptr, size, pass); }, mcHandle,
      mcOffset, memptr, size, flags);
}
CUresult cuMulticastUnbind(CUmemGenericAllocationHandle mcHandle, CUdevice dev, size_t mcOffset,
                           size_t size) {
  return forward<Hook::cuMulticastUnbind>(mcHandle, dev, mcOffset, size);
}
CUresult cuMemGetHandleForAddressRange(void* handle, CUdeviceptr dptr, size_t size,
                                       CUmemRangeHandleType handleType, unsigned long long flags) {
  return serve<Hook::cuMemGetHandleForAddressRange>(
      [&](Router& router, const Pass& pass) { return router.share_range(dptr, size, pass); }, handle, dptr,
      size, handleType, flags);
}
CUresult cuCtxEnablePeerAccess(CUcontext peerContext, unsigned int Flags) {
  return forward<Hook::cuCtxEnablePeerAccess>(peerContext, Flags);
}
CUresult cuCtxDisablePeerAccess(CUcontext peerContext) {
  return forward<Hook::cuCtxDisablePeerAccess>(peerContext);
}

#pragma GCC visibility pop
