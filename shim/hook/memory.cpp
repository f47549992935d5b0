// Exported wrappers: device memory of the cuMemAlloc kind, host memory, arrays.
#include "shim/hook/passage.hpp"

using namespace tidepool;

#pragma GCC visibility push(default)

CUresult cuMemAlloc(CUdeviceptr_v1* dptr, unsigned int bytesize) {
  return forward<Hook::cuMemAlloc>(dptr, bytesize);
}
CUresult cuMemAlloc_v2(CUdeviceptr* dptr, size_t bytesize) {
  return serve<Hook::cuMemAlloc_v2, &Router::allocate>(dptr, bytesize);
}
CUresult cuMemAllocPitch(CUdeviceptr_v1* dptr, unsigned int* pPitch, unsigned int WidthInBytes,
                         unsigned int Height, unsigned int ElementSizeBytes) {
  return forward<Hook::cuMemAllocPitch>(dptr, pPitch, WidthInBytes, Height, ElementSizeBytes);
}
CUresult cuMemAllocPitch_v2(CUdeviceptr* dptr, size_t* pPitch, size_t WidthInBytes, size_t Height,
                            unsigned int ElementSizeBytes) {
  return serve<Hook::cuMemAllocPitch_v2>(
      [&](Router& router, const Pass& pass) {
        return router.allocate_pitch(dptr, pPitch, WidthInBytes, Height, ElementSizeBytes, pass);
      },
      dptr, pPitch, WidthInBytes, Height, ElementSizeBytes);
}
CUresult cuMemFree(CUdeviceptr_v1 dptr) { return forward<Hook::cuMemFree>(dptr); }
CUresult cuMemFree_v2(CUdeviceptr dptr) { return serve<Hook::cuMemFree_v2, &Router::free>(dptr); }
CUresult cuMemAllocManaged(CUdeviceptr* dptr, size_t bytesize, unsigned int flags) {
  return forward<Hook::cuMemAllocManaged>(dptr, bytesize, flags);
}

CUresult cuMemAllocHost(void** pp, unsigned int bytesize) {
  return forward<Hook::cuMemAllocHost>(pp, bytesize);
}
CUresult cuMemAllocHost_v2(void** pp, size_t bytesize) {
  return forward<Hook::cuMemAllocHost_v2>(pp, bytesize);
}
CUresult cuMemHostAlloc(void** pp, size_t bytesize, unsigned int Flags) {
  return forward<Hook::cuMemHostAlloc>(pp, bytesize, Flags);
}
CUresult cuMemFreeHost(void* p) { return forward<Hook::cuMemFreeHost>(p); }
CUresult cuMemHostRegister(void* p, size_t bytesize, unsigned int Flags) {
  return forward<Hook::cuMemHostRegister>(p, bytesize, Flags);
}
CUresult cuMemHostRegister_v2(void* p, size_t bytesize, unsigned int Flags) {
  return forward<Hook::cuMemHostRegister_v2>(p, bytesize, Flags);
}
CUresult cuMemHostUnregister(void* p) { return forward<Hook::cuMemHostUnregister>(p); }
CUresult cuMemHostGetDevicePointer(CUdeviceptr_v1* pdptr, void* p, unsigned int Flags) {
  return forward<Hook::cuMemHostGetDevicePointer>(pdptr, p, Flags);
}
CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr* pdptr, void* p, unsigned int Flags) {
  return forward<Hook::cuMemHostGetDevicePointer_v2>(pdptr, p, Flags);
}

CUresult cuArrayCreate(CUarray* pHandle, const CUDA_ARRAY_DESCRIPTOR_v1* pAllocateArray) {
  return forward<Hook::cuArrayCreate>(pHandle, pAllocateArray);
}
CUresult cuArrayCreate_v2(CUarray* pHandle, const CUDA_ARRAY_DESCRIPTOR* pAllocateArray) {
  return forward<Hook::cuArrayCreate_v2>(pHandle, pAllocateArray);
}
CUresult cuArray3DCreate(CUarray* pHandle, const CUDA_ARRAY3D_DESCRIPTOR_v1* pAllocateArray) {
  return forward<Hook::cuArray3DCreate>(pHandle, pAllocateArray);
}
CUresult cuArray3DCreate_v2(CUarray* pHandle, const CUDA_ARRAY3D_DESCRIPTOR* pAllocateArray) {
  return forward<Hook::cuArray3DCreate_v2>(pHandle, pAllocateArray);
}
CUresult cuArrayDestroy(CUarray hArray) { return forward<Hook::cuArrayDestroy>(hArray); }
CUresult cuMipmappedArrayCreate(CUmipmappedArray* pHandle, const CUDA_ARRAY3D_DESCRIPTOR* pMipmappedArrayDesc,
                                unsigned int numMipmapLevels) {
  return forward<Hook::cuMipmappedArrayCreate>(pHandle, pMipmappedArrayDesc, numMipmapLevels);
}
CUresult cuMipmappedArrayDestroy(CUmipmappedArray hMipmappedArray) {
  return forward<Hook::cuMipmappedArrayDestroy>(hMipmappedArray);
}

#pragma GCC visibility pop
