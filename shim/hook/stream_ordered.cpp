// Exported wrappers: stream-ordered memory and its pools.
#include "shim/hook/passage.hpp"

using namespace tidepool;

#pragma GCC visibility push(default)

CUresult cuMemAllocAsync(CUdeviceptr* dptr, size_t bytesize, CUstream hStream) {
  return serve<Hook::cuMemAllocAsync>(
      [&](Router& router, const Pass& pass) {
        return router.allocate_async(dptr, bytesize, nullptr, {hStream, false}, pass);
      },
      dptr, bytesize, hStream);
}
CUresult cuMemAllocAsync_ptsz(CUdeviceptr* dptr, size_t bytesize, CUstream hStream) {
  return serve<Hook::cuMemAllocAsync_ptsz>(
      [&](Router& router, const Pass& pass) {
        return router.allocate_async(dptr, bytesize, nullptr, {hStream, true}, pass);
      },
      dptr, bytesize, hStream);
}
CUresult cuMemAllocFromPoolAsync(CUdeviceptr* dptr, size_t bytesize, CUmemoryPool pool, CUstream hStream) {
  return serve<Hook::cuMemAllocFromPoolAsync>(
      [&](Router& router, const Pass& pass) {
        // Null is no pool here; to the router it means the current one.
        return pool == nullptr ? router.pass_on(pass)
                               : router.allocate_async(dptr, bytesize, pool, {hStream, false}, pass);
      },
      dptr, bytesize, pool, hStream);
}
CUresult cuMemAllocFromPoolAsync_ptsz(CUdeviceptr* dptr, size_t bytesize, CUmemoryPool pool,
                                      CUstream hStream) {
  return serve<Hook::cuMemAllocFromPoolAsync_ptsz>(
      [&](Router& router, const Pass& pass) {
        // Null is no pool here; to the router it means the current one.
        return pool == nullptr ? router.pass_on(pass)
                               : router.allocate_async(dptr, bytesize, pool, {hStream, true}, pass);
      },
      dptr, bytesize, pool, hStream);
}
CUresult cuMemFreeAsync(CUdeviceptr dptr, CUstream hStream) {
  return serve<Hook::cuMemFreeAsync>(
      [&](Router& router, const Pass& pass) {
        return router.free_async(dptr, {hStream, false}, pass);
      },
      dptr, hStream);
}
CUresult cuMemFreeAsync_ptsz(CUdeviceptr dptr, CUstream hStream) {
  return serve<Hook::cuMemFreeAsync_ptsz>(
      [&](Router& router, const Pass& pass) {
        return router.free_async(dptr, {hStream, true}, pass);
      },
      dptr, hStream);
}

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool* pool_out, CUdevice dev) {
  return forward<Hook::cuDeviceGetDefaultMemPool>(pool_out, dev);
}
CUresult cuDeviceGetMemPool(CUmemoryPool* pool, CUdevice dev) {
  return forward<Hook::cuDeviceGetMemPool>(pool, dev);
}
CUresult cuDeviceSetMemPool(CUdevice dev, CUmemoryPool pool) {
  return serve<Hook::cuDeviceSetMemPool>(
      [](Router& router, const Pass& pass) { return router.pool_chosen(pass); }, dev, pool);
}
CUresult cuMemGetDefaultMemPool(CUmemoryPool* pool_out, CUmemLocation* location, CUmemAllocationType type) {
  return forward<Hook::cuMemGetDefaultMemPool>(pool_out, location, type);
}
CUresult cuMemGetMemPool(CUmemoryPool* pool, CUmemLocation* location, CUmemAllocationType type) {
  return forward<Hook::cuMemGetMemPool>(pool, location, type);
}
CUresult cuMemSetMemPool(CUmemLocation* location, CUmemAllocationType type, CUmemoryPool pool) {
  return serve<Hook::cuMemSetMemPool>(
      [](Router& router, const Pass& pass) { return router.pool_chosen(pass); }, location, type, pool);
}
CUresult cuMemPoolCreate(CUmemoryPool* pool, const CUmemPoolProps* poolProps) {
  return serve<Hook::cuMemPoolCreate, &Router::pool_created>(pool, poolProps);
}
CUresult cuMemPoolDestroy(CUmemoryPool pool) {
  return serve<Hook::cuMemPoolDestroy, &Router::pool_destroyed>(pool);
}
CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t minBytesToKeep) {
  return serve<Hook::cuMemPoolTrimTo, &Router::trim_pool>(pool, minBytesToKeep);
}
CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attr, void* value) {
  return serve<Hook::cuMemPoolSetAttribute>(
      [&](Router& router, const Pass& pass) { return router.set_pool_attribute(pool, attr, pass); }, pool,
      attr, value);
}
CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attr, void* value) {
  return serve<Hook::cuMemPoolGetAttribute, &Router::pool_attribute>(pool, attr, value);
}
CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc* map, size_t count) {
  return serve<Hook::cuMemPoolSetAccess, &Router::pool_shared>(pool, map, count);
}
CUresult cuMemPoolGetAccess(CUmemAccess_flags* flags, CUmemoryPool memPool, CUmemLocation* location) {
  return forward<Hook::cuMemPoolGetAccess>(flags, memPool, location);
}
CUresult cuMemPoolExportToShareableHandle(void* handle_out, CUmemoryPool pool,
                                          CUmemAllocationHandleType handleType, unsigned long long flags) {
  return forward<Hook::cuMemPoolExportToShareableHandle>(handle_out, pool, handleType, flags);
}
CUresult cuMemPoolImportFromShareableHandle(CUmemoryPool* pool_out, void* handle,
                                            CUmemAllocationHandleType handleType, unsigned long long flags) {
  return forward<Hook::cuMemPoolImportFromShareableHandle>(pool_out, handle, handleType, flags);
}
CUresult cuMemPoolExportPointer(CUmemPoolPtrExportData* shareData_out, CUdeviceptr ptr) {
  return forward<Hook::cuMemPoolExportPointer>(shareData_out, ptr);
}
CUresult cuMemPoolImportPointer(CUdeviceptr* ptr_out, CUmemoryPool pool, CUmemPoolPtrExportData* shareData) {
  return forward<Hook::cuMemPoolImportPointer>(ptr_out, pool, shareData);
}

#pragma GCC visibility pop
