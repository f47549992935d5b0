// Exported wrappers: the application's own virtual memory.
#include "shim/hook/passage.hpp"

using namespace tidepool;

#pragma GCC visibility push(default)

CUresult cuMemAddressReserve(CUdeviceptr* ptr, size_t size, size_t alignment, CUdeviceptr addr,
                             unsigned long long flags) {
  return forward<Hook::cuMemAddressReserve>(ptr, size, alignment, addr, flags);
}
CUresult cuMemAddressFree(CUdeviceptr ptr, size_t size) {
  return serve<Hook::cuMemAddressFree, &Router::about_mapping>(ptr, size);
}
CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, size_t size, const CUmemAllocationProp* prop,
                     unsigned long long flags) {
  return serve<Hook::cuMemCreate>(
      [&](Router& router, const Pass& pass) { return router.create(handle, size, prop, flags, pass); },
      handle, size, prop, flags);
}
CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  return serve<Hook::cuMemRelease, &Router::release>(handle);
}
CUresult cuMemMap(CUdeviceptr ptr, size_t size, size_t offset, CUmemGenericAllocationHandle handle,
                  unsigned long long flags) {
  return serve<Hook::cuMemMap>(
      [&](Router& router, const Pass& pass) { return router.map(ptr, size, handle, pass); }, ptr, size,
      offset, handle, flags);
}
CUresult cuMemMapArrayAsync(CUarrayMapInfo* mapInfoList, unsigned int count, CUstream hStream) {
  return forward<Hook::cuMemMapArrayAsync>(mapInfoList, count, hStream);
}
CUresult cuMemMapArrayAsync_ptsz(CUarrayMapInfo* mapInfoList, unsigned int count, CUstream hStream) {
  return forward<Hook::cuMemMapArrayAsync_ptsz>(mapInfoList, count, hStream);
}
CUresult cuMemUnmap(CUdeviceptr ptr, size_t size) {
  return serve<Hook::cuMemUnmap, &Router::unmap>(ptr, size);
}
CUresult cuMemSetAccess(CUdeviceptr ptr, size_t size, const CUmemAccessDesc* desc, size_t count) {
  return serve<Hook::cuMemSetAccess>(
      [&](Router& router, const Pass& pass) { return router.about_mapping(ptr, size, pass); }, ptr, size,
      desc, count);
}
CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* handle, void* addr) {
  return serve<Hook::cuMemRetainAllocationHandle, &Router::retain>(handle, addr);
}
CUresult cuMemExportToShareableHandle(void* shareableHandle, CUmemGenericAllocationHandle handle,
                                      CUmemAllocationHandleType handleType, unsigned long long flags) {
  return serve<Hook::cuMemExportToShareableHandle>(
      [&](Router& router, const Pass& pass) { return router.share_handle(handle, pass); }, shareableHandle,
      handle, handleType, flags);
}
CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle* handle, void* osHandle,
                                        CUmemAllocationHandleType shHandleType) {
  return forward<Hook::cuMemImportFromShareableHandle>(handle, osHandle, shHandleType);
}
CUresult cuMemGetAccess(unsigned long long* flags, const CUmemLocation* location, CUdeviceptr ptr) {
  return serve<Hook::cuMemGetAccess>(
      [&](Router& router, const Pass& pass) { return router.about_mapping(ptr, 1, pass); }, flags, location,
      ptr);
}
CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp* prop,
                                                CUmemGenericAllocationHandle handle) {
  return serve<Hook::cuMemGetAllocationPropertiesFromHandle>(
      [&](Router& router, const Pass& pass) { return router.about_handle(handle, pass); }, prop, handle);
}

#pragma GCC visibility pop
