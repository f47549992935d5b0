// Streams: made, asked, waited for, and host functions put on them. Events are in entry_event.cpp.
#include <algorithm>

#include "call.hpp"
#include "capture.hpp"
#include "entries.hpp"
#include "pool.hpp"
#include "rules.hpp"
#include "state.hpp"

namespace sim {
namespace {

CUresult create_stream(CUstream* handle, unsigned flags, int priority) {
  if (!handle || flags > CU_STREAM_NON_BLOCKING) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock;
  auto stream = std::make_unique<Stream>();
  SIM_TRY(current_context(&stream->context));
  stream->id = state().next_id++;
  stream->flags = flags;
  stream->priority = priority < -5 ? -5 : priority > 0 ? 0 : priority;  // cuda.h: clamped
  open_lane(*stream, false);
  *handle = state().streams.add(std::move(stream));
  return CUDA_SUCCESS;
}

// Its work goes on (cuda.h).
CUresult destroy_stream(CUstream handle) {
  const Lock lock;
  Stream* stream = state().streams.find(handle);
  if (!stream) return CUDA_ERROR_INVALID_HANDLE;
  if (stream->capture && stream->capture->origin == stream) {
    stream->capture->invalidated = true;
    std::erase(state().captures, stream->capture);
  }
  const CUresult result = stream->context->error;
  state().streams.remove(handle);
  return result;
}

bool waits_for_others(const Stream& stream) {
  return stream.lane->legacy && rules().legacy_waits_for_blocking;
}

bool is_idle(const Stream& stream) {
  if (stream.lane->done != stream.lane->issued) return false;
  if (!waits_for_others(stream)) return true;
  for (const auto& [id, lane] : timeline().lanes())
    if (lane->context == stream.context && lane->blocking && lane->done != lane->issued) return false;
  return true;
}

// What cuStreamAddCallback and cuLaunchHostFunc put on a stream: a call by the driver's own thread.
Work host_work(std::function<void(CUresult)> call) {
  Work work;
  work.kind = Work::Kind::host;
  work.name = "a host function";
  work.call = std::move(call);
  return work;
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
  SIM_TRY(refuse_unsafe());
  timeline().tick_for_query();
  if (stream->context->error) return stream->context->error;
  if (!is_idle(*stream)) return CUDA_ERROR_NOT_READY;
  settle_pools({stream->lane, stream->lane->issued, stream->lane->known});
  return CUDA_SUCCESS;
}

CUresult SIM_ENTRY(cuStreamSynchronize)(CUstream hStream) {
  Lock lock;
  Stream* stream = nullptr;
  SIM_TRY(find_stream(hStream, &stream));
  SIM_TRY(refuse_in_capture_of(stream));
  SIM_TRY(refuse_unsafe());
  Context& context = *stream->context;
  const Mark reached{stream->lane, stream->lane->issued, stream->lane->known};
  if (waits_for_others(*stream)) timeline().wait_blocking(lock, context);
  timeline().wait(lock, reached.lane, reached.ticket);
  if (context.error) return context.error;
  settle_pools(reached);
  trim_pools(context.device);
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
  } else if (stream->capture && event->mark) {
    stream->capture->invalidated = true;
    return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
  } else if (event->mark) {
    timeline().queue(stream->lane, Work{}, {event->mark});
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

CUresult SIM_ENTRY(cuLaunchHostFunc)(CUstream hStream, CUhostFn fn, void* userData) {
  if (!fn) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock;
  Stream* stream = nullptr;
  SIM_TRY(find_stream(hStream, &stream));
  return submit(stream, CU_GRAPH_NODE_TYPE_HOST, host_work([fn, userData](CUresult result) {
                  if (result == CUDA_SUCCESS) fn(userData);  // cuda.h: not called after an error
                }));
}

CUresult SIM_ENTRY(cuStreamAddCallback)(CUstream hStream, CUstreamCallback callback, void* userData,
                                        unsigned int flags) {
  if (!callback || flags) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock;
  Stream* stream = nullptr;
  SIM_TRY(find_stream(hStream, &stream));
  SIM_TRY(refuse_in_capture_of(stream));  // cuda.h: cannot be captured
  return submit(stream, CU_GRAPH_NODE_TYPE_HOST,
                host_work([=](CUresult result) { callback(hStream, result, userData); }));
}

}  // namespace sim
