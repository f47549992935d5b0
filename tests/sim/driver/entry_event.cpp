// Events: marks of a stream's or a context's work, in virtual time.
#include "capture.hpp"
#include "entries.hpp"
#include "pool.hpp"
#include "state.hpp"

namespace sim {
namespace {

CUresult destroy_event(CUevent handle) {
  const Lock lock;
  const std::unique_ptr<Event> event = state().events.remove(handle);
  return event ? event->context->error : CUDA_ERROR_INVALID_HANDLE;
}

CUresult record(CUevent handle, CUstream on) {
  const Lock lock;
  Event* event = state().events.find(handle);
  if (!event) return CUDA_ERROR_INVALID_HANDLE;
  Stream* stream = nullptr;
  SIM_TRY(find_stream(on, &stream));
  if (event->context != stream->context) return CUDA_ERROR_INVALID_HANDLE;  // cuda.h: same context
  SIM_TRY(refuse_work(stream));
  if (stream->capture) {
    event->capture = stream->capture;
    event->capture_tail = stream->capture_tail;
    return CUDA_SUCCESS;
  }
  event->capture.reset();
  event->mark = timeline().mark(stream->lane, Work{});
  return CUDA_SUCCESS;
}

CUresult elapsed(float* milliseconds, CUevent start, CUevent end) {
  if (!milliseconds) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock;
  const Event* first = state().events.find(start);
  const Event* last = state().events.find(end);
  if (!first || !last || !first->mark || !last->mark) return CUDA_ERROR_INVALID_HANDLE;
  if ((first->flags | last->flags) & CU_EVENT_DISABLE_TIMING) return CUDA_ERROR_INVALID_HANDLE;
  if (first->context->error) return first->context->error;
  if (!first->mark->done || !last->mark->done) return CUDA_ERROR_NOT_READY;
  *milliseconds = static_cast<float>(last->mark->time - first->mark->time) / 1e6f;
  return CUDA_SUCCESS;
}

// A captured event has no host-side state to ask for.
CUresult look_at(CUevent handle, Event** event) {
  *event = state().events.find(handle);
  if (!*event) return CUDA_ERROR_INVALID_HANDLE;
  const auto& capture = (*event)->capture;
  if (capture && !capture->invalidated) {
    capture->invalidated = true;
    return CUDA_ERROR_CAPTURED_EVENT;
  }
  SIM_TRY(refuse_unsafe());
  return (*event)->context->error;
}

CUresult find_context(CUcontext handle, Context** context) {
  if (!handle) return current_context(context);
  *context = state().find_context(handle);
  return *context ? (*context)->error : CUDA_ERROR_INVALID_CONTEXT;
}

}  // namespace

CUresult SIM_ENTRY(cuEventCreate)(CUevent* phEvent, unsigned int Flags) {
  if (!phEvent || Flags > 7) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock;
  auto event = std::make_unique<Event>();
  SIM_TRY(current_context(&event->context));
  event->flags = Flags;
  *phEvent = state().events.add(std::move(event));
  return CUDA_SUCCESS;
}

CUresult SIM_ENTRY(cuEventDestroy)(CUevent hEvent) { return destroy_event(hEvent); }
CUresult SIM_ENTRY(cuEventDestroy_v2)(CUevent hEvent) { return destroy_event(hEvent); }
CUresult SIM_ENTRY(cuEventRecord)(CUevent hEvent, CUstream hStream) { return record(hEvent, hStream); }
CUresult SIM_ENTRY(cuEventRecordWithFlags)(CUevent hEvent, CUstream hStream, unsigned int flags) {
  return flags > CU_EVENT_RECORD_EXTERNAL ? CUDA_ERROR_INVALID_VALUE : record(hEvent, hStream);
}

// An event that was never recorded is over (cuda.h, cuEventRecord).
CUresult SIM_ENTRY(cuEventQuery)(CUevent hEvent) {
  const Lock lock;
  Event* event = nullptr;
  SIM_TRY(look_at(hEvent, &event));
  timeline().tick_for_query();
  if (event->context->error) return event->context->error;
  if (!event->mark) return CUDA_SUCCESS;
  if (!event->mark->done) return CUDA_ERROR_NOT_READY;
  settle_pools(*event->mark);
  return CUDA_SUCCESS;
}

CUresult SIM_ENTRY(cuEventSynchronize)(CUevent hEvent) {
  Lock lock;
  Event* event = nullptr;
  SIM_TRY(look_at(hEvent, &event));
  Context& context = *event->context;
  if (const std::shared_ptr<Mark> mark = event->mark) {
    timeline().wait(lock, mark->lane, mark->ticket);
    if (context.error) return context.error;
    settle_pools(*mark);
  }
  trim_pools(context.device);
  return CUDA_SUCCESS;
}

CUresult SIM_ENTRY(cuEventElapsedTime)(float* pMilliseconds, CUevent hStart, CUevent hEnd) {
  return elapsed(pMilliseconds, hStart, hEnd);
}
CUresult SIM_ENTRY(cuEventElapsedTime_v2)(float* pMilliseconds, CUevent hStart, CUevent hEnd) {
  return elapsed(pMilliseconds, hStart, hEnd);
}

CUresult SIM_ENTRY(cuCtxRecordEvent)(CUcontext hCtx, CUevent hEvent) {
  const Lock lock;
  Context* context = nullptr;
  SIM_TRY(find_context(hCtx, &context));
  Event* event = state().events.find(hEvent);
  if (!event || event->context != context) return CUDA_ERROR_INVALID_HANDLE;
  SIM_TRY(refuse_in_capture_of(context));
  if (!context->markers)
    context->markers = timeline().open({.id = state().next_id++, .context = context, .hidden = true});
  event->capture.reset();
  event->mark = timeline().mark_context(*context);
  return CUDA_SUCCESS;
}

// Streams that there are wait now; those to come wait when they are made.
CUresult SIM_ENTRY(cuCtxWaitEvent)(CUcontext hCtx, CUevent hEvent) {
  const Lock lock;
  Context* context = nullptr;
  SIM_TRY(find_context(hCtx, &context));
  const Event* event = state().events.find(hEvent);
  if (!event) return CUDA_ERROR_INVALID_HANDLE;
  for (const auto& capture : state().captures) {
    if (capture != event->capture) continue;
    capture->invalidated = true;  // cuda.h: an event of an ongoing capture ends it
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  SIM_TRY(refuse_in_capture_of(context));
  if (!event->mark || event->mark->done) return CUDA_SUCCESS;
  context->waits.push_back(event->mark);
  std::vector<std::shared_ptr<Lane>> lanes;
  for (const auto& [id, lane] : timeline().lanes())
    if (lane->context == context && !lane->closed && !lane->hidden) lanes.push_back(lane);
  for (const auto& lane : lanes) timeline().queue(lane, Work{}, {event->mark});
  return CUDA_SUCCESS;
}

}  // namespace sim
