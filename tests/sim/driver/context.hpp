// Contexts, streams and events: the objects that calls name by handle.
//
// A handle is the address of its object, and the object is deleted with it, so that a handle's
// value comes back for a new object just as it does on a real driver. No handle is followed
// before its table has confirmed it.
#pragma once
#include <cuda.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "timeline.hpp"

namespace sim {

struct Context;
struct Stream;

// Objects of one kind by handle.
template <typename Object, typename Handle>
class Table {
 public:
  Object* find(Handle handle) const {
    const auto at = objects_.find(handle);
    return at == objects_.end() ? nullptr : at->second.get();
  }
  Handle add(std::unique_ptr<Object> object) {
    const Handle handle = reinterpret_cast<Handle>(object.get());
    objects_[handle] = std::move(object);
    return handle;
  }
  std::unique_ptr<Object> remove(Handle handle) {
    const auto at = objects_.find(handle);
    if (at == objects_.end()) return nullptr;
    std::unique_ptr<Object> object = std::move(at->second);
    objects_.erase(at);
    return object;
  }
  template <typename Condition>
  void remove_if(Condition condition) {
    std::erase_if(objects_, [&](const auto& entry) { return condition(*entry.second); });
  }
  template <typename Visitor>
  void for_each(Visitor visit) const {
    for (const auto& entry : objects_) visit(*entry.second);
  }
  std::size_t size() const { return objects_.size(); }

 private:
  std::unordered_map<Handle, std::unique_ptr<Object>> objects_;
};

// A node of a graph: what it does when launched, step by step.
struct GraphNode {
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
  Works works;
  std::vector<GraphNode*> dependencies;
  struct Graph* graph = nullptr;
};

struct Graph {
  std::vector<std::unique_ptr<GraphNode>> nodes;
};

// A capture in progress; shared by all streams that joined it.
struct Capture {
  std::uint64_t id = 0;
  Stream* origin = nullptr;
  CUgraph graph = nullptr;
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  int thread = 0;
  bool invalidated = false;
};

struct Stream {
  ~Stream();  // its lane stays until its work is done

  Context* context = nullptr;
  std::shared_ptr<Lane> lane;
  std::uint64_t id = 0;
  unsigned flags = 0;
  int priority = 0;
  std::shared_ptr<Capture> capture;      // empty: not capturing
  std::vector<GraphNode*> capture_tail;  // what the next captured node depends on
};

struct Event {
  Context* context = nullptr;
  unsigned flags = 0;
  std::shared_ptr<Mark> mark;        // of the last record; empty: never recorded
  std::shared_ptr<Capture> capture;  // set if the last record was captured
  std::vector<GraphNode*> capture_tail;
};

struct Context {
  int device = 0;
  std::uint64_t id = 0;
  unsigned flags = 0;
  bool primary = false;
  CUresult error = CUDA_SUCCESS;   // of its work, if it failed: the context can only be destroyed
  std::shared_ptr<Lane> markers;   // where cuCtxRecordEvent puts its marks
  Marks waits;                     // of cuCtxWaitEvent, for streams that are yet to come
  std::unique_ptr<Stream> legacy;  // the default stream
  std::unordered_map<int, std::unique_ptr<Stream>> thread_default;  // by thread id
  std::unordered_map<int, std::size_t> limits;
  std::unordered_set<std::uint64_t> peers;  // ids of contexts whose memory it may use
};

struct Function {
  struct Module* module = nullptr;
  Context* context = nullptr;
  std::string name;
  const char* kept_name = "";             // for what outlives the module
  const struct OwnKernel* own = nullptr;  // of the simulator's own, which compute; null: foreign
  std::int64_t cost = 0;
};

struct Module {
  Context* context = nullptr;
  std::unordered_map<std::string, std::unique_ptr<Function>> functions;
  bool complete = false;  // there are no functions but these
};

}  // namespace sim
