// Exported wrappers: hints about managed memory, and how a graph or a stream may use it.
#include "shim/hook/passage.hpp"

using namespace tidepool;

#pragma GCC visibility push(default)

CUresult cuMemPrefetchAsync(CUdeviceptr devPtr, size_t count, CUdevice dstDevice, CUstream hStream) {
  return forward<Hook::cuMemPrefetchAsync>(devPtr, count, dstDevice, hStream);
}
CUresult cuMemPrefetchAsync_ptsz(CUdeviceptr devPtr, size_t count, CUdevice dstDevice, CUstream hStream) {
  return forward<Hook::cuMemPrefetchAsync_ptsz>(devPtr, count, dstDevice, hStream);
}
CUresult cuMemPrefetchAsync_v2(CUdeviceptr devPtr, size_t count, CUmemLocation location, unsigned int flags,
                               CUstream hStream) {
  return forward<Hook::cuMemPrefetchAsync_v2>(devPtr, count, location, flags, hStream);
}
CUresult cuMemPrefetchAsync_v2_ptsz(CUdeviceptr devPtr, size_t count, CUmemLocation location,
                                    unsigned int flags, CUstream hStream) {
  return forward<Hook::cuMemPrefetchAsync_v2_ptsz>(devPtr, count, location, flags, hStream);
}
CUresult cuMemPrefetchBatchAsync(CUdeviceptr* dptrs, size_t* sizes, size_t count, CUmemLocation* prefetchLocs,
                                 size_t* prefetchLocIdxs, size_t numPrefetchLocs, unsigned long long flags,
                                 CUstream hStream) {
  return forward<Hook::cuMemPrefetchBatchAsync>(dptrs, sizes, count, prefetchLocs, prefetchLocIdxs,
                                                numPrefetchLocs, flags, hStream);
}
CUresult cuMemPrefetchBatchAsync_ptsz(CUdeviceptr* dptrs, size_t* sizes, size_t count,
                                      CUmemLocation* prefetchLocs, size_t* prefetchLocIdxs,
                                      size_t numPrefetchLocs, unsigned long long flags, CUstream hStream) {
  return forward<Hook::cuMemPrefetchBatchAsync_ptsz>(dptrs, sizes, count, prefetchLocs, prefetchLocIdxs,
                                                     numPrefetchLocs, flags, hStream);
}
CUresult cuMemDiscardBatchAsync(CUdeviceptr* dptrs, size_t* sizes, size_t count, unsigned long long flags,
                                CUstream hStream) {
  return forward<Hook::cuMemDiscardBatchAsync>(dptrs, sizes, count, flags, hStream);
}
CUresult cuMemDiscardBatchAsync_ptsz(CUdeviceptr* dptrs, size_t* sizes, size_t count,
                                     unsigned long long flags, CUstream hStream) {
  return forward<Hook::cuMemDiscardBatchAsync_ptsz>(dptrs, sizes, count, flags, hStream);
}
CUresult cuMemDiscardAndPrefetchBatchAsync(CUdeviceptr* dptrs, size_t* sizes, size_t count,
                                           CUmemLocation* prefetchLocs, size_t* prefetchLocIdxs,
                                           size_t numPrefetchLocs, unsigned long long flags,
                                           CUstream hStream) {
  return forward<Hook::cuMemDiscardAndPrefetchBatchAsync>(dptrs, sizes, count, prefetchLocs, prefetchLocIdxs,
                                                          numPrefetchLocs, flags, hStream);
}
CUresult cuMemDiscardAndPrefetchBatchAsync_ptsz(CUdeviceptr* dptrs, size_t* sizes, size_t count,
                                                CUmemLocation* prefetchLocs, size_t* prefetchLocIdxs,
                                                size_t numPrefetchLocs, unsigned long long flags,
                                                CUstream hStream) {
  return forward<Hook::cuMemDiscardAndPrefetchBatchAsync_ptsz>(
      dptrs, sizes, count, prefetchLocs, prefetchLocIdxs, numPrefetchLocs, flags, hStream);
}
CUresult cuMemAdvise(CUdeviceptr devPtr, size_t count, CUmem_advise advice, CUdevice device) {
  return forward<Hook::cuMemAdvise>(devPtr, count, advice, device);
}
CUresult cuMemAdvise_v2(CUdeviceptr devPtr, size_t count, CUmem_advise advice, CUmemLocation location) {
  return forward<Hook::cuMemAdvise_v2>(devPtr, count, advice, location);
}
CUresult cuStreamAttachMemAsync(CUstream hStream, CUdeviceptr dptr, size_t length, unsigned int flags) {
  return forward<Hook::cuStreamAttachMemAsync>(hStream, dptr, length, flags);
}
CUresult cuStreamAttachMemAsync_ptsz(CUstream hStream, CUdeviceptr dptr, size_t length, unsigned int flags) {
  return forward<Hook::cuStreamAttachMemAsync_ptsz>(hStream, dptr, length, flags);
}

#pragma GCC visibility pop
