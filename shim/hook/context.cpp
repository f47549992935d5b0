// Exported wrappers: contexts, streams and captures, as far as memory depends on them.
#include "shim/hook/passage.hpp"

using namespace tidepool;

#pragma GCC visibility push(default)

CUresult cuCtxCreate(CUcontext* pctx, unsigned int flags, CUdevice dev) {
  return serve<Hook::cuCtxCreate>(
      [&](Router& router, const Pass& pass) { return router.context_created(pctx, dev, false, pass); }, pctx,
      flags, dev);
}
CUresult cuCtxCreate_v2(CUcontext* pctx, unsigned int flags, CUdevice dev) {
  return serve<Hook::cuCtxCreate_v2>(
      [&](Router& router, const Pass& pass) { return router.context_created(pctx, dev, false, pass); }, pctx,
      flags, dev);
}
CUresult cuCtxCreate_v3(CUcontext* pctx, CUexecAffinityParam* paramsArray, int numParams, unsigned int flags,
                        CUdevice dev) {
  return serve<Hook::cuCtxCreate_v3>(
      [&](Router& router, const Pass& pass) { return router.context_created(pctx, dev, false, pass); }, pctx,
      paramsArray, numParams, flags, dev);
}
CUresult cuCtxCreate_v4(CUcontext* pctx, CUctxCreateParams* ctxCreateParams, unsigned int flags,
                        CUdevice dev) {
  return serve<Hook::cuCtxCreate_v4>(
      [&](Router& router, const Pass& pass) { return router.context_created(pctx, dev, false, pass); }, pctx,
      ctxCreateParams, flags, dev);
}
CUresult cuCtxDestroy(CUcontext ctx) { return serve<Hook::cuCtxDestroy, &Router::context_destroyed>(ctx); }
CUresult cuCtxDestroy_v2(CUcontext ctx) {
  return serve<Hook::cuCtxDestroy_v2, &Router::context_destroyed>(ctx);
}
CUresult cuDevicePrimaryCtxRetain(CUcontext* pctx, CUdevice dev) {
  return serve<Hook::cuDevicePrimaryCtxRetain>(
      [&](Router& router, const Pass& pass) { return router.context_created(pctx, dev, true, pass); }, pctx,
      dev);
}
CUresult cuDevicePrimaryCtxRelease(CUdevice dev) {
  return serve<Hook::cuDevicePrimaryCtxRelease, &Router::primary_context_released>(dev);
}
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice dev) {
  return serve<Hook::cuDevicePrimaryCtxRelease_v2, &Router::primary_context_released>(dev);
}
CUresult cuDevicePrimaryCtxReset(CUdevice dev) {
  return serve<Hook::cuDevicePrimaryCtxReset, &Router::primary_context_reset>(dev);
}
CUresult cuDevicePrimaryCtxReset_v2(CUdevice dev) {
  return serve<Hook::cuDevicePrimaryCtxReset_v2, &Router::primary_context_reset>(dev);
}
// Deprecated. Whether it was the last attachment cannot be told, so its blocks stay with the process.
CUresult cuCtxDetach(CUcontext ctx) {
  return serve<Hook::cuCtxDetach>(
      [](Router& router, const Pass& pass) { return router.may_end_contexts(pass); }, ctx);
}

CUresult cuStreamDestroy(CUstream hStream) {
  return serve<Hook::cuStreamDestroy, &Router::destroy_stream>(hStream);
}
CUresult cuStreamDestroy_v2(CUstream hStream) {
  return serve<Hook::cuStreamDestroy_v2, &Router::destroy_stream>(hStream);
}

CUresult cuStreamBeginCapture(CUstream hStream) {
  return serve<Hook::cuStreamBeginCapture>(
      [&](Router& router, const Pass& pass) { return router.begin_capture(hStream, false, pass); }, hStream);
}
CUresult cuStreamBeginCapture_ptsz(CUstream hStream) {
  return serve<Hook::cuStreamBeginCapture_ptsz>(
      [&](Router& router, const Pass& pass) { return router.begin_capture(hStream, true, pass); }, hStream);
}
CUresult cuStreamBeginCapture_v2(CUstream hStream, CUstreamCaptureMode mode) {
  return serve<Hook::cuStreamBeginCapture_v2>(
      [&](Router& router, const Pass& pass) { return router.begin_capture(hStream, false, pass); }, hStream,
      mode);
}
CUresult cuStreamBeginCapture_v2_ptsz(CUstream hStream, CUstreamCaptureMode mode) {
  return serve<Hook::cuStreamBeginCapture_v2_ptsz>(
      [&](Router& router, const Pass& pass) { return router.begin_capture(hStream, true, pass); }, hStream,
      mode);
}
CUresult cuStreamBeginCaptureToGraph(CUstream hStream, CUgraph hGraph, const CUgraphNode* dependencies,
                                     const CUgraphEdgeData* dependencyData, size_t numDependencies,
                                     CUstreamCaptureMode mode) {
  return serve<Hook::cuStreamBeginCaptureToGraph>(
      [&](Router& router, const Pass& pass) { return router.begin_capture(hStream, false, pass); }, hStream,
      hGraph, dependencies, dependencyData, numDependencies, mode);
}
CUresult cuStreamBeginCaptureToGraph_ptsz(CUstream hStream, CUgraph hGraph, const CUgraphNode* dependencies,
                                          const CUgraphEdgeData* dependencyData, size_t numDependencies,
                                          CUstreamCaptureMode mode) {
  return serve<Hook::cuStreamBeginCaptureToGraph_ptsz>(
      [&](Router& router, const Pass& pass) { return router.begin_capture(hStream, true, pass); }, hStream,
      hGraph, dependencies, dependencyData, numDependencies, mode);
}
CUresult cuStreamEndCapture(CUstream hStream, CUgraph* phGraph) {
  return serve<Hook::cuStreamEndCapture>(
      [&](Router& router, const Pass& pass) { return router.end_capture(hStream, false, pass); }, hStream,
      phGraph);
}
CUresult cuStreamEndCapture_ptsz(CUstream hStream, CUgraph* phGraph) {
  return serve<Hook::cuStreamEndCapture_ptsz>(
      [&](Router& router, const Pass& pass) { return router.end_capture(hStream, true, pass); }, hStream,
      phGraph);
}

#pragma GCC visibility pop
