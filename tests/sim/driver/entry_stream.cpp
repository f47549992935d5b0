// Streams and events.
#include <algorithm>
#include <ctime>

#include "call.hpp"
#include "capture.hpp"
#include "entries.hpp"
#include "pool.hpp"
#include "state.hpp"

namespace sim {
namespace {

std::int64_t now() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1'000'000'000LL + time.tv_nsec;
}

CUresult create_stream(CUstream* handle, unsigned flags, int priority) {
  if (!handle || flags > CU_STREAM_NON_BLOCKING) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock;
  auto stream = std::make_unique<Stream>();
  SIM_TRY(current_context(&stream->context));
  stream->id = state().next_id++;
  stream->flags = flags;
  stream->priority = priority < -5 ? -5 : priority > 0 ? 0 : priority;  // cuda.h: clamped
  *handle = state().streams.add(std::move(stream));
  return CUDA_SUCCESS;
}

CUresult destroy_stream(CUstream handle) {
  const Lock lock;
  Stream* stream = state().streams.find(handle);
  if (!stream) return CUDA_ERROR_INVALID_HANDLE;
  if (stream->capture && stream->capture->origin == stream) {
    stream->capture->invalidated = true;
    std::erase(state().captures, stream->capture);
  }
  state().streams.remove(handle);
  return CUDA_SUCCESS;
}

CUresult destroy_event(CUevent handle) {
  const Lock lock;
  return state().events.remove(handle) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult record(CUevent handle, CUstream on) {
  const Lock lock;
  Event* event = state().events.find(handle);
  if (!event) return CUDA_ERROR_INVALID_HANDLE;
  Stream* stream = nullptr;
  SIM_TRY(find_stream(on, &stream));
  if (event->context != stream->context) return CUDA_ERROR_INVALID_HANDLE;  // cuda.h: same context
  if (stream->capture) {
    if (stream->capture->invalidated) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    event->capture = stream->capture;
    event->capture_tail = stream->capture_tail;
    return CUDA_SUCCESS;
  }
  event->capture.reset();
  event->recorded = true;
  event->time = now();
  return CUDA_SUCCESS;
}

CUresult elapsed(float* milliseconds, CUevent start, CUevent end) {
  if (!milliseconds) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock;
  const Event* first = state().events.find(start);
  const Event* last = state().events.find(end);
  if (!first || !last || !first->recorded || !last->recorded) return CUDA_ERROR_INVALID_HANDLE;
  if ((first->flags | last->flags) & CU_EVENT_DISABLE_TIMING) return CUDA_ERROR_INVALID_HANDLE;
  *milliseconds = static_cast<float>(last->time - first->time) / 1e6f;
  return CUDA_SUCCESS;
}

// A captured event has no host-side state to ask for.
CUresult look_at(CUevent handle) {
  Event* event = state().events.find(handle);
  if (!event) return CUDA_ERROR_INVALID_HANDLE;
  if (event->capture && !event->capture->invalidated) {
    event->capture->invalidated = true;
    return CUDA_ERROR_CAPTURED_EVENT;
  }
  return refuse_unsafe();
}

CUresult get_context(CUstream handle, CUcontext* context) {
  if (!context) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock;
  Stream* stream = nullptr;
  SIM_TRY(find_stream(handle, &stream));
  *context = reinterpret_cast<CUcontext>(stream->context);
  return CUDA_SUCCESS;
}

}  // namespace

CUresult SIM_ENTRY(cuStreamCreate)(CUstream* phStream, unsigned int Flags) {
  return create_stream(phStream, Flags, 0);
}
CUresult SIM_ENTRY(cuStreamCreateWithPriority)(CUstream* phStream, unsigned int flags, int priority) {
  return create_stream(phStream, flags, priority);
}
CUresult SIM_ENTRY(cuStreamDestroy)(CUstream hStream) { return destroy_stream(hStream); }
CUresult SIM_ENTRY(cuStreamDestroy_v2)(CUstream hStream) { return destroy_stream(hStream); }

CUresult SIM_ENTRY(cuStreamQuery)(CUstream hStream) {
  const Lock lock;
  Stream* stream = nullptr;
  SIM_TRY(find_stream(hStream, &stream));
  SIM_TRY(refuse_in_capture_of(stream));
  return refuse_unsafe();
}

CUresult SIM_ENTRY(cuStreamSynchronize)(CUstream hStream) {
  const Lock lock;
  Stream* stream = nullptr;
  SIM_TRY(find_stream(hStream, &stream));
  SIM_TRY(refuse_in_capture_of(stream));
  SIM_TRY(refuse_unsafe());
  trim_pools(stream->context->device);
  return CUDA_SUCCESS;
}

CUresult SIM_ENTRY(cuStreamWaitEvent)(CUstream hStream, CUevent hEvent, unsigned int) {
  const Lock lock;
  Event* event = state().events.find(hEvent);
  if (!event) return CUDA_ERROR_INVALID_HANDLE;
  Stream* stream = nullptr;
  SIM_TRY(find_stream(hStream, &stream));
  if (stream->capture && stream->capture->invalidated) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (event->capture) {  // a wait on a captured event takes the stream into its capture
    if (event->capture->invalidated) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (stream->capture && stream->capture != event->capture) {
      stream->capture->invalidated = event->capture->invalidated = true;
      return CUDA_ERROR_STREAM_CAPTURE_MERGE;
    }
    stream->capture = event->capture;
    for (GraphNode* node : event->capture_tail)
      if (std::find(stream->capture_tail.begin(), stream->capture_tail.end(), node) ==
          stream->capture_tail.end())
        stream->capture_tail.push_back(node);
  } else if (stream->capture && event->recorded) {
    stream->capture->invalidated = true;
    return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
  }
  return CUDA_SUCCESS;
}

CUresult SIM_ENTRY(cuStreamGetPriority)(CUstream hStream, int* priority) {
  if (!priority) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock;
  Stream* stream = nullptr;
  SIM_TRY(find_stream(hStream, &stream));
  *priority = stream->priority;
  return CUDA_SUCCESS;
}

CUresult SIM_ENTRY(cuStreamGetFlags)(CUstream hStream, unsigned int* flags) {
  if (!flags) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock;
  Stream* stream = nullptr;
  SIM_TRY(find_stream(hStream, &stream));
  *flags = stream->flags;
  return CUDA_SUCCESS;
}

CUresult SIM_ENTRY(cuStreamGetId)(CUstream hStream, unsigned long long* streamId) {
  if (!streamId) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock;
  Stream* stream = nullptr;
  SIM_TRY(find_stream(hStream, &stream));
  *streamId = stream->id;
  return CUDA_SUCCESS;
}

CUresult SIM_ENTRY(cuStreamGetDevice)(CUstream hStream, CUdevice* device) {
  if (!device) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock;
  Stream* stream = nullptr;
  SIM_TRY(find_stream(hStream, &stream));
  *device = stream->context->device;
  return CUDA_SUCCESS;
}

CUresult SIM_ENTRY(cuStreamGetCtx)(CUstream hStream, CUcontext* pctx) { return get_context(hStream, pctx); }
CUresult SIM_ENTRY(cuStreamGetCtx_v2)(CUstream hStream, CUcontext* pCtx, CUgreenCtx* pGreenCtx) {
  if (pGreenCtx) *pGreenCtx = nullptr;
  return get_context(hStream, pCtx);
}

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

CUresult SIM_ENTRY(cuEventQuery)(CUevent hEvent) {
  const Lock lock;
  return look_at(hEvent);
}

CUresult SIM_ENTRY(cuEventSynchronize)(CUevent hEvent) {
  const Lock lock;
  SIM_TRY(look_at(hEvent));
  trim_pools(state().events.find(hEvent)->context->device);
  return CUDA_SUCCESS;
}

CUresult SIM_ENTRY(cuEventElapsedTime)(float* pMilliseconds, CUevent hStart, CUevent hEnd) {
  return elapsed(pMilliseconds, hStart, hEnd);
}
CUresult SIM_ENTRY(cuEventElapsedTime_v2)(float* pMilliseconds, CUevent hStart, CUevent hEnd) {
  return elapsed(pMilliseconds, hStart, hEnd);
}

// Records everything the context was given so far, which in this form has run.
CUresult SIM_ENTRY(cuCtxRecordEvent)(CUcontext hCtx, CUevent hEvent) {
  const Lock lock;
  Event* event = state().events.find(hEvent);
  Context* context = hCtx ? state().find_context(hCtx) : nullptr;
  if (!hCtx) SIM_TRY(current_context(&context));
  if (!event || !context || event->context != context) return CUDA_ERROR_INVALID_HANDLE;
  SIM_TRY(refuse_in_capture_of(context));
  event->capture.reset();
  event->recorded = true;
  event->time = now();
  return CUDA_SUCCESS;
}

CUresult SIM_ENTRY(cuCtxWaitEvent)(CUcontext hCtx, CUevent hEvent) {
  const Lock lock;
  Context* context = hCtx ? state().find_context(hCtx) : nullptr;
  if (!hCtx) SIM_TRY(current_context(&context));
  if (!state().events.find(hEvent) || !context) return CUDA_ERROR_INVALID_HANDLE;
  return refuse_in_capture_of(context);
}

CUresult SIM_ENTRY(cuLaunchHostFunc)(CUstream hStream, CUhostFn fn, void* userData) {
  if (!fn) return CUDA_ERROR_INVALID_VALUE;
  Lock lock;
  Stream* stream = nullptr;
  SIM_TRY(find_stream(hStream, &stream));
  return submit(lock, stream, CU_GRAPH_NODE_TYPE_HOST, [fn, userData] {
    const CallbackScope scope;
    fn(userData);
  });
}

CUresult SIM_ENTRY(cuStreamAddCallback)(CUstream hStream, CUstreamCallback callback, void* userData,
                                        unsigned int flags) {
  if (!callback || flags) return CUDA_ERROR_INVALID_VALUE;
  Lock lock;
  Stream* stream = nullptr;
  SIM_TRY(find_stream(hStream, &stream));
  SIM_TRY(refuse_in_capture_of(stream));  // cuda.h: cannot be captured
  return submit(lock, stream, CU_GRAPH_NODE_TYPE_HOST, [=] {
    const CallbackScope scope;
    callback(hStream, CUDA_SUCCESS, userData);
  });
}

}  // namespace sim
