// Submission and capture rules; see capture.hpp.
#include "capture.hpp"

#include "call.hpp"
#include "entries.hpp"

namespace sim {
namespace {

thread_local CUstreamCaptureMode thread_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

void invalidate(Capture& capture) { capture.invalidated = true; }

// Work on the legacy stream waits for every blocking stream of its context, also for one that captures.
CUresult refuse_implicit(const Stream* stream, bool invalidating = true) {
  if (stream != stream->context->legacy.get()) return CUDA_SUCCESS;
  for (const auto& capture : state().captures) {
    if (capture->origin->context != stream->context || capture->origin->flags & CU_STREAM_NON_BLOCKING)
      continue;
    if (invalidating) invalidate(*capture);
    return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  }
  return CUDA_SUCCESS;
}

void leave_capture(const Capture* capture) {
  const auto leave = [capture](Stream& stream) {
    if (stream.capture.get() != capture) return;
    stream.capture.reset();
    stream.capture_tail.clear();
  };
  state().streams.for_each(leave);
  if (Context* context = capture->origin->context)
    for (auto& [thread, stream] : context->thread_default) leave(*stream);
  std::erase_if(state().captures, [capture](const auto& entry) { return entry.get() == capture; });
}

CUresult begin_capture(CUstream handle, CUgraph graph, CUstreamCaptureMode mode) {
  if (mode < CU_STREAM_CAPTURE_MODE_GLOBAL || mode > CU_STREAM_CAPTURE_MODE_RELAXED)
    return CUDA_ERROR_INVALID_VALUE;
  Stream* stream = nullptr;
  SIM_TRY(find_stream(handle, &stream));
  // cuda.h: "must not be the legacy stream".
  if (stream == stream->context->legacy.get()) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  if (stream->capture) return CUDA_ERROR_ILLEGAL_STATE;
  auto capture = std::make_shared<Capture>();
  capture->id = state().next_id++;
  capture->origin = stream;
  capture->mode = mode;
  capture->thread = thread_id();
  capture->graph = graph ? graph : state().graphs.add(std::make_unique<Graph>());
  stream->capture = capture;
  state().captures.push_back(std::move(capture));
  return CUDA_SUCCESS;
}

CUresult capture_info(CUstream handle, CUstreamCaptureStatus* status, cuuint64_t* id, CUgraph* graph,
                      const CUgraphNode** dependencies, size_t* count) {
  if (!status) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock;
  Stream* stream = nullptr;
  SIM_TRY(find_stream(handle, &stream));
  SIM_TRY(refuse_implicit(stream, false));  // cuda.h, cuStreamIsCapturing: asking ends nothing
  if (!stream->capture) {
    *status = CU_STREAM_CAPTURE_STATUS_NONE;
    return CUDA_SUCCESS;
  }
  if (stream->capture->invalidated) {
    *status = CU_STREAM_CAPTURE_STATUS_INVALIDATED;
    return CUDA_SUCCESS;
  }
  *status = CU_STREAM_CAPTURE_STATUS_ACTIVE;
  if (id) *id = stream->capture->id;
  if (graph) *graph = stream->capture->graph;
  if (dependencies) *dependencies = reinterpret_cast<const CUgraphNode*>(stream->capture_tail.data());
  if (count) *count = stream->capture_tail.size();
  return CUDA_SUCCESS;
}

}  // namespace

GraphNode* capture_node(Stream* stream, CUgraphNodeType type, Works works) {
  Graph* graph = state().graphs.find(stream->capture->graph);
  if (!graph) return nullptr;
  graph->nodes.push_back(
      std::make_unique<GraphNode>(GraphNode{type, std::move(works), stream->capture_tail, graph}));
  stream->capture_tail = {graph->nodes.back().get()};
  return graph->nodes.back().get();
}

CUresult refuse_work(const Stream* stream) {
  SIM_TRY(refuse_implicit(stream));
  return stream->capture && stream->capture->invalidated ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
                                                         : CUDA_SUCCESS;
}

CUresult submit(Stream* stream, CUgraphNodeType type, Works works, const Marks& after) {
  SIM_TRY(refuse_work(stream));
  if (stream->capture)
    return capture_node(stream, type, std::move(works)) ? CUDA_SUCCESS
                                                        : CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  bool first = true;
  for (Work& work : works) {
    timeline().queue(stream->lane, std::move(work), first ? after : Marks{});
    first = false;
  }
  return CUDA_SUCCESS;
}

CUresult submit(Stream* stream, CUgraphNodeType type, Work work) {
  Works works;
  works.push_back(std::move(work));
  return submit(stream, type, std::move(works));
}

CUresult refuse_in_capture_of(const Context* context) {
  for (const auto& capture : state().captures) {
    if (capture->origin->context != context) continue;
    invalidate(*capture);
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  return CUDA_SUCCESS;
}

CUresult refuse_in_capture_of(const Stream* stream) {
  SIM_TRY(refuse_implicit(stream));
  if (!stream->capture) return CUDA_SUCCESS;
  invalidate(*stream->capture);
  return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

CUresult refuse_unsafe() {
  if (state().captures.empty() || thread_mode == CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_SUCCESS;
  for (const auto& capture : state().captures) {
    const bool own = capture->thread == thread_id() && capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED;
    const bool others =
        thread_mode == CU_STREAM_CAPTURE_MODE_GLOBAL && capture->mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
    if (!own && !others) continue;
    invalidate(*capture);
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  return CUDA_SUCCESS;
}

CUresult SIM_ENTRY(cuStreamBeginCapture_v2)(CUstream hStream, CUstreamCaptureMode mode) {
  const Lock lock;
  return begin_capture(hStream, nullptr, mode);
}
CUresult SIM_ENTRY(cuStreamBeginCapture)(CUstream hStream) {
  return entry::cuStreamBeginCapture_v2(hStream, CU_STREAM_CAPTURE_MODE_GLOBAL);
}

CUresult SIM_ENTRY(cuStreamBeginCaptureToGraph)(CUstream hStream, CUgraph hGraph,
                                                const CUgraphNode* dependencies, const CUgraphEdgeData*,
                                                size_t numDependencies, CUstreamCaptureMode mode) {
  const Lock lock;
  if (!state().graphs.find(hGraph) || (numDependencies && !dependencies)) return CUDA_ERROR_INVALID_VALUE;
  SIM_TRY(begin_capture(hStream, hGraph, mode));
  Stream* stream = nullptr;
  SIM_TRY(find_stream(hStream, &stream));
  for (std::size_t i = 0; i < numDependencies; ++i)
    stream->capture_tail.push_back(reinterpret_cast<GraphNode*>(dependencies[i]));
  return CUDA_SUCCESS;
}

CUresult SIM_ENTRY(cuStreamEndCapture)(CUstream hStream, CUgraph* phGraph) {
  if (!phGraph) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock;
  Stream* stream = nullptr;
  SIM_TRY(find_stream(hStream, &stream));
  const std::shared_ptr<Capture> capture = stream->capture;
  if (!capture) return CUDA_ERROR_ILLEGAL_STATE;
  if (capture->origin != stream) return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
  if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED && capture->thread != thread_id())
    return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
  leave_capture(capture.get());
  *phGraph = nullptr;
  if (capture->invalidated) {
    state().graphs.remove(capture->graph);
    return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  }
  *phGraph = capture->graph;
  return CUDA_SUCCESS;
}

CUresult SIM_ENTRY(cuStreamIsCapturing)(CUstream hStream, CUstreamCaptureStatus* captureStatus) {
  return capture_info(hStream, captureStatus, nullptr, nullptr, nullptr, nullptr);
}
CUresult SIM_ENTRY(cuStreamGetCaptureInfo)(CUstream hStream, CUstreamCaptureStatus* captureStatus_out,
                                           cuuint64_t* id_out) {
  return capture_info(hStream, captureStatus_out, id_out, nullptr, nullptr, nullptr);
}
CUresult SIM_ENTRY(cuStreamGetCaptureInfo_v2)(CUstream hStream, CUstreamCaptureStatus* captureStatus_out,
                                              cuuint64_t* id_out, CUgraph* graph_out,
                                              const CUgraphNode** dependencies_out,
                                              size_t* numDependencies_out) {
  return capture_info(hStream, captureStatus_out, id_out, graph_out, dependencies_out, numDependencies_out);
}
CUresult SIM_ENTRY(cuStreamGetCaptureInfo_v3)(CUstream hStream, CUstreamCaptureStatus* captureStatus_out,
                                              cuuint64_t* id_out, CUgraph* graph_out,
                                              const CUgraphNode** dependencies_out,
                                              const CUgraphEdgeData** edgeData_out,
                                              size_t* numDependencies_out) {
  if (edgeData_out) *edgeData_out = nullptr;
  return capture_info(hStream, captureStatus_out, id_out, graph_out, dependencies_out, numDependencies_out);
}

CUresult SIM_ENTRY(cuThreadExchangeStreamCaptureMode)(CUstreamCaptureMode* mode) {
  if (!mode || *mode < CU_STREAM_CAPTURE_MODE_GLOBAL || *mode > CU_STREAM_CAPTURE_MODE_RELAXED)
    return CUDA_ERROR_INVALID_VALUE;
  std::swap(*mode, thread_mode);
  return CUDA_SUCCESS;
}

}  // namespace sim
