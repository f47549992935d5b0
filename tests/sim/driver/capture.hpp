// Putting work on streams, and what a capture changes about that.
//
// Streams run at once in this form: work is done before the call returns. The one door through
// which work enters a stream is submit(), so that a queue can take its place.
#pragma once
#include <cuda.h>

#include <functional>
#include <memory>

#include "context.hpp"
#include "state.hpp"

namespace sim {

// Runs the work on the stream, or makes it a node of the capture the stream is part of. The lock
// is let go while work runs: it may be a function of the application.
CUresult submit(Lock& lock, Stream* stream, CUgraphNodeType type, std::function<void()> work);

// For what waits for a whole context or stream: during a capture it fails and ends the capture.
CUresult refuse_in_capture_of(const Context* context);
CUresult refuse_in_capture_of(const Stream* stream);

// For calls that cuda.h names potentially unsafe (cuThreadExchangeStreamCaptureMode).
CUresult refuse_unsafe();

// Adds a node to the graph of the stream's capture, behind what the stream captured before.
GraphNode* capture_node(Stream* stream, CUgraphNodeType type, std::function<void()> work);

// Runs a graph's nodes in the order of their dependencies. Without the lock.
void run_nodes(const std::vector<std::function<void()>>& work);

}  // namespace sim
