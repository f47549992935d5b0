// Contexts that come and go, and captures that end.
#include "shim/route/router.hpp"

namespace tidepool {

CUresult Router::context_created(const CUcontext* context, int device, bool primary, const Pass& pass) {
  const CUresult result = pass_on(pass);
  if (result == CUDA_SUCCESS) contexts_.add({*context, device, primary});
  return result;
}

// A context takes its cuMemAlloc blocks with it (cuda.h, cuCtxDestroy); stream-ordered ones live on.
void Router::context_ended(CUcontext context) {
  for (const auto& [address, record] : ledger_.remove_context(reinterpret_cast<std::uint64_t>(context))) {
    forget(record);
    if (record.origin == Origin::arena)
      devices_[static_cast<std::size_t>(record.device)]->free_block(address, kNoStream);
  }
}

// It leaves the list before the call: a fence of another thread must not enter a dead context.
CUresult Router::context_destroyed(CUcontext context, const Pass& pass) {
  const std::optional<Contexts::Entry> entry = contexts_.take(context);
  const CUresult result = pass();
  if (result == CUDA_SUCCESS)
    context_ended(context);
  else if (entry)
    contexts_.add(*entry);
  return result;
}

// Release ends the primary context only with its last holder, so the driver is asked.
CUresult Router::primary_context_ended(int device, const Pass& pass) {
  const std::optional<Contexts::Entry> entry = contexts_.take_primary(device);
  const CUresult result = pass();
  if (!entry) return result;
  unsigned flags = 0;
  int active = 1;
  if (result == CUDA_SUCCESS &&
      driver.cuDevicePrimaryCtxGetState(device, &flags, &active) == CUDA_SUCCESS && active == 0)
    context_ended(entry->context);
  else
    contexts_.add(*entry);
  return result;
}

CUresult Router::end_capture(CUstream stream, const Pass& pass) {
  const CUresult result = pass();
  // After these two the capture is still open, on the thread or stream that began it.
  if (result != CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD && result != CUDA_ERROR_ILLEGAL_STATE) gate_.end(stream);
  return result;
}

}  // namespace tidepool
