// Events of a fence: made once for each context, recorded and asked about many times.
#include "shim/route/event_fence.hpp"

#include <algorithm>

namespace tidepool {

EventFence::Mark* EventFence::mark_of(CUcontext context) {
  for (Mark& mark : marks_)
    if (mark.context == context) return &mark;
  marks_.reserve(marks_.size() + 1);
  // An event belongs to the context that is current when it is made.
  if (driver.cuCtxPushCurrent_v2(context) != CUDA_SUCCESS) return nullptr;
  CUevent event = nullptr;
  const CUresult made = driver.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING);
  CUcontext popped = nullptr;
  driver.cuCtxPopCurrent_v2(&popped);
  if (made != CUDA_SUCCESS) return nullptr;
  marks_.push_back({context, event, false});
  return &marks_.back();
}

bool EventFence::record(const std::vector<CUcontext>& contexts) {
  for (Mark& mark : marks_) mark.recorded = false;
  for (CUcontext context : contexts) {
    Mark* mark = mark_of(context);
    if (mark == nullptr || driver.cuCtxRecordEvent(context, mark->event) != CUDA_SUCCESS) return false;
    mark->recorded = true;
  }
  return true;
}

EventFence::Progress EventFence::query() {
  for (Mark& mark : marks_) {
    if (!mark.recorded) continue;
    const CUresult result = driver.cuEventQuery(mark.event);
    if (result == CUDA_ERROR_NOT_READY) return Progress::pending;
    if (result != CUDA_SUCCESS) return Progress::impossible;
    mark.recorded = false;
  }
  return Progress::done;
}

void EventFence::forget(CUcontext context) {
  const std::lock_guard hold(lock_);
  std::erase_if(marks_, [&](const Mark& mark) { return mark.context == context; });
}

}  // namespace tidepool
