// Putting work on streams, and what a capture changes about that.
//
// The one door through which work enters a stream is submit(): it queues it (timeline.hpp), or makes
// it a node of the capture the stream is part of.
#pragma once
#include <cuda.h>

#include <memory>

#include "context.hpp"
#include "state.hpp"

namespace sim {

CUresult submit(Stream* stream, CUgraphNodeType type, Works works, const Marks& after = {});
CUresult submit(Stream* stream, CUgraphNodeType type, Work work);

// Whether submit() would refuse work on this stream.
CUresult refuse_work(const Stream* stream);

// For what waits for a whole context or stream: during a capture it fails and ends the capture.
CUresult refuse_in_capture_of(const Context* context);
CUresult refuse_in_capture_of(const Stream* stream);

// For calls that cuda.h names potentially unsafe (cuThreadExchangeStreamCaptureMode).
CUresult refuse_unsafe();

// Adds a node to the graph of the stream's capture, behind what the stream captured before.
GraphNode* capture_node(Stream* stream, CUgraphNodeType type, Works works);

}  // namespace sim
