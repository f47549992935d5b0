// Exported wrappers: streams, events and contexts as the driver takes device memory for them.
#include "shim/hook/passage.hpp"

using namespace tidepool;

#pragma GCC visibility push(default)

CUresult cuStreamCreate(CUstream* phStream, unsigned int Flags) {
  return forward<Hook::cuStreamCreate>(phStream, Flags);
}
CUresult cuStreamCreateWithPriority(CUstream* phStream, unsigned int flags, int priority) {
  return forward<Hook::cuStreamCreateWithPriority>(phStream, flags, priority);
}
CUresult cuGreenCtxStreamCreate(CUstream* phStream, CUgreenCtx greenCtx, unsigned int flags, int priority) {
  return forward<Hook::cuGreenCtxStreamCreate>(phStream, greenCtx, flags, priority);
}
CUresult cuEventCreate(CUevent* phEvent, unsigned int Flags) {
  return forward<Hook::cuEventCreate>(phEvent, Flags);
}
CUresult cuCtxSetLimit(CUlimit limit, size_t value) { return forward<Hook::cuCtxSetLimit>(limit, value); }
CUresult cuGreenCtxCreate(CUgreenCtx* phCtx, CUdevResourceDesc desc, CUdevice dev, unsigned int flags) {
  return forward<Hook::cuGreenCtxCreate>(phCtx, desc, dev, flags);
}
CUresult cuGreenCtxDestroy(CUgreenCtx hCtx) {
  return serve<Hook::cuGreenCtxDestroy>(
      [](Router& router, const Pass& pass) { return router.may_end_contexts(pass); }, hCtx);
}
CUresult cuCtxFromGreenCtx(CUcontext* pContext, CUgreenCtx hCtx) {
  return forward<Hook::cuCtxFromGreenCtx>(pContext, hCtx);
}

#pragma GCC visibility pop
