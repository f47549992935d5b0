// Graphs: made by hand or by capture, instantiated, launched. In this form nodes run in the order
// in which they were added, kernels compute nothing, and conditional nodes are not known.
#include <algorithm>

#include "call.hpp"
#include "capture.hpp"
#include "copy.hpp"
#include "entries.hpp"
#include "graph.hpp"
#include "state.hpp"

namespace sim {
namespace {

using Work = std::function<void()>;

// Ends with the last of a graph and its executables.
struct GraphMemory {
  std::vector<std::uint64_t> blocks;
  ~GraphMemory() {
    for (const std::uint64_t base : blocks)
      if (const auto at = state().blocks.find(base); at != state().blocks.end()) free_block(at);
  }
};

struct Executable {
  std::vector<Work> work;
  std::vector<const GraphNode*> nodes;  // identities only: the graph may be gone
  std::shared_ptr<GraphMemory> memory;
};

Table<Executable, CUgraphExec>& executables() {
  static auto* const table = new Table<Executable, CUgraphExec>;
  return *table;
}

std::unordered_map<CUgraph, std::shared_ptr<GraphMemory>>& memories() {
  static auto* const map = new std::unordered_map<CUgraph, std::shared_ptr<GraphMemory>>;
  return *map;
}

CUresult add(CUgraphNode* handle, CUgraph into, const CUgraphNode* dependencies, std::size_t count,
             CUgraphNodeType type, Work work) {
  if (!handle || (count && !dependencies)) return CUDA_ERROR_INVALID_VALUE;
  Graph* graph = state().graphs.find(into);
  if (!graph) return CUDA_ERROR_INVALID_VALUE;
  auto node = std::make_unique<GraphNode>();
  node->type = type;
  node->work = std::move(work);
  node->graph = graph;
  for (std::size_t i = 0; i < count; ++i)
    node->dependencies.push_back(reinterpret_cast<GraphNode*>(dependencies[i]));
  graph->nodes.push_back(std::move(node));
  *handle = reinterpret_cast<CUgraphNode>(graph->nodes.back().get());
  return CUDA_SUCCESS;
}

Work host_work(CUhostFn function, void* data) {
  return [function, data] {
    const CallbackScope scope;
    function(data);
  };
}

Work child_work(CUgraph handle) {
  std::vector<Work> steps;
  if (const Graph* child = state().graphs.find(handle))
    for (const auto& node : child->nodes) steps.push_back(node->work);
  return [steps] { run_nodes(steps); };
}

CUresult work_of(const CUgraphNodeParams& params, Work* work) {
  switch (params.type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
    case CU_GRAPH_NODE_TYPE_EMPTY:
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD: return CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_MEMCPY: return plan_copy(params.memcpy.copyParams, work);
    case CU_GRAPH_NODE_TYPE_MEMSET:
      return plan_fill(params.memset.dst, params.memset.pitch, params.memset.value, params.memset.elementSize,
                       params.memset.width, params.memset.height, work);
    case CU_GRAPH_NODE_TYPE_HOST:
      *work = host_work(params.host.fn, params.host.userData);
      return CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_GRAPH: *work = child_work(params.graph.graph); return CUDA_SUCCESS;
    default: return CUDA_ERROR_NOT_SUPPORTED;
  }
}

void fill(Executable& executable, CUgraph handle, const Graph& graph) {
  executable.work.clear();
  executable.nodes.clear();
  for (const auto& node : graph.nodes) {
    executable.nodes.push_back(node.get());
    executable.work.push_back(node->work);
  }
  const auto at = memories().find(handle);
  executable.memory = at == memories().end() ? nullptr : at->second;
}

CUresult instantiate(CUgraphExec* handle, CUgraph from) {
  if (!handle) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock;
  const Graph* graph = state().graphs.find(from);
  if (!graph) return CUDA_ERROR_INVALID_VALUE;
  auto executable = std::make_unique<Executable>();
  fill(*executable, from, *graph);
  *handle = executables().add(std::move(executable));
  return CUDA_SUCCESS;
}

CUresult set_work(CUgraphExec handle, CUgraphNode node, Work work) {
  Executable* executable = executables().find(handle);
  if (!executable) return CUDA_ERROR_INVALID_VALUE;
  for (std::size_t i = 0; i < executable->nodes.size(); ++i) {
    if (executable->nodes[i] != reinterpret_cast<const GraphNode*>(node)) continue;
    executable->work[i] = std::move(work);
    return CUDA_SUCCESS;
  }
  return CUDA_ERROR_INVALID_VALUE;
}

}  // namespace

void own_by_graph(CUgraph graph, std::uint64_t base) {
  auto& memory = memories()[graph];
  if (!memory) memory = std::make_shared<GraphMemory>();
  memory->blocks.push_back(base);
}

bool owned_by_graph(CUgraph graph, std::uint64_t base) {
  const auto at = memories().find(graph);
  return at != memories().end() &&
         std::find(at->second->blocks.begin(), at->second->blocks.end(), base) != at->second->blocks.end();
}

CUresult SIM_ENTRY(cuGraphCreate)(CUgraph* phGraph, unsigned int flags) {
  if (!phGraph || flags) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock;
  *phGraph = state().graphs.add(std::make_unique<Graph>());
  return CUDA_SUCCESS;
}

CUresult SIM_ENTRY(cuGraphDestroy)(CUgraph hGraph) {
  const Lock lock;
  if (!state().graphs.remove(hGraph)) return CUDA_ERROR_INVALID_VALUE;
  memories().erase(hGraph);
  return CUDA_SUCCESS;
}

CUresult SIM_ENTRY(cuGraphAddNode_v2)(CUgraphNode* phGraphNode, CUgraph hGraph,
                                      const CUgraphNode* dependencies, const CUgraphEdgeData*,
                                      size_t numDependencies, CUgraphNodeParams* nodeParams) {
  if (!nodeParams) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock;
  Work work;
  SIM_TRY(work_of(*nodeParams, &work));
  return add(phGraphNode, hGraph, dependencies, numDependencies, nodeParams->type, std::move(work));
}

CUresult SIM_ENTRY(cuGraphAddNode)(CUgraphNode* phGraphNode, CUgraph hGraph, const CUgraphNode* dependencies,
                                   size_t numDependencies, CUgraphNodeParams* nodeParams) {
  return entry::cuGraphAddNode_v2(phGraphNode, hGraph, dependencies, nullptr, numDependencies, nodeParams);
}

CUresult SIM_ENTRY(cuGraphAddKernelNode_v2)(CUgraphNode* phGraphNode, CUgraph hGraph,
                                            const CUgraphNode* dependencies, size_t numDependencies,
                                            const CUDA_KERNEL_NODE_PARAMS* nodeParams) {
  if (!nodeParams) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock;
  return add(phGraphNode, hGraph, dependencies, numDependencies, CU_GRAPH_NODE_TYPE_KERNEL, {});
}

CUresult SIM_ENTRY(cuGraphAddEmptyNode)(CUgraphNode* phGraphNode, CUgraph hGraph,
                                        const CUgraphNode* dependencies, size_t numDependencies) {
  const Lock lock;
  return add(phGraphNode, hGraph, dependencies, numDependencies, CU_GRAPH_NODE_TYPE_EMPTY, {});
}

CUresult SIM_ENTRY(cuGraphAddHostNode)(CUgraphNode* phGraphNode, CUgraph hGraph,
                                       const CUgraphNode* dependencies, size_t numDependencies,
                                       const CUDA_HOST_NODE_PARAMS* nodeParams) {
  if (!nodeParams || !nodeParams->fn) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock;
  return add(phGraphNode, hGraph, dependencies, numDependencies, CU_GRAPH_NODE_TYPE_HOST,
             host_work(nodeParams->fn, nodeParams->userData));
}

CUresult SIM_ENTRY(cuGraphAddMemcpyNode)(CUgraphNode* phGraphNode, CUgraph hGraph,
                                         const CUgraphNode* dependencies, size_t numDependencies,
                                         const CUDA_MEMCPY3D* copyParams, CUcontext) {
  if (!copyParams) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock;
  Work work;
  SIM_TRY(plan_copy(*copyParams, &work));
  return add(phGraphNode, hGraph, dependencies, numDependencies, CU_GRAPH_NODE_TYPE_MEMCPY, std::move(work));
}

CUresult SIM_ENTRY(cuGraphAddMemsetNode)(CUgraphNode* phGraphNode, CUgraph hGraph,
                                         const CUgraphNode* dependencies, size_t numDependencies,
                                         const CUDA_MEMSET_NODE_PARAMS* params, CUcontext) {
  if (!params) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock;
  Work work;
  SIM_TRY(plan_fill(params->dst, params->pitch, params->value, params->elementSize, params->width,
                    params->height, &work));
  return add(phGraphNode, hGraph, dependencies, numDependencies, CU_GRAPH_NODE_TYPE_MEMSET, std::move(work));
}

CUresult SIM_ENTRY(cuGraphAddChildGraphNode)(CUgraphNode* phGraphNode, CUgraph hGraph,
                                             const CUgraphNode* dependencies, size_t numDependencies,
                                             CUgraph childGraph) {
  const Lock lock;
  if (!state().graphs.find(childGraph)) return CUDA_ERROR_INVALID_VALUE;
  return add(phGraphNode, hGraph, dependencies, numDependencies, CU_GRAPH_NODE_TYPE_GRAPH,
             child_work(childGraph));
}

// Handles of nodes are followed without a table: asking about a destroyed one is undefined (cuda.h).
CUresult SIM_ENTRY(cuGraphNodeGetType)(CUgraphNode hNode, CUgraphNodeType* type) {
  if (!hNode || !type) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock;
  *type = reinterpret_cast<GraphNode*>(hNode)->type;
  return CUDA_SUCCESS;
}

CUresult SIM_ENTRY(cuGraphGetNodes)(CUgraph hGraph, CUgraphNode* nodes, size_t* numNodes) {
  if (!numNodes) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock;
  const Graph* graph = state().graphs.find(hGraph);
  if (!graph) return CUDA_ERROR_INVALID_VALUE;
  if (nodes)
    for (std::size_t i = 0; i < *numNodes; ++i)
      nodes[i] = i < graph->nodes.size() ? reinterpret_cast<CUgraphNode>(graph->nodes[i].get()) : nullptr;
  if (!nodes || *numNodes > graph->nodes.size()) *numNodes = graph->nodes.size();
  return CUDA_SUCCESS;
}

CUresult SIM_ENTRY(cuGraphInstantiateWithFlags)(CUgraphExec* phGraphExec, CUgraph hGraph,
                                                unsigned long long) {
  return instantiate(phGraphExec, hGraph);
}

CUresult SIM_ENTRY(cuGraphInstantiateWithParams)(CUgraphExec* phGraphExec, CUgraph hGraph,
                                                 CUDA_GRAPH_INSTANTIATE_PARAMS* instantiateParams) {
  if (!instantiateParams) return CUDA_ERROR_INVALID_VALUE;
  instantiateParams->result_out = CUDA_GRAPH_INSTANTIATE_SUCCESS;
  return instantiate(phGraphExec, hGraph);
}

CUresult SIM_ENTRY(cuGraphExecDestroy)(CUgraphExec hGraphExec) {
  const Lock lock;
  return executables().remove(hGraphExec) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult SIM_ENTRY(cuGraphExecKernelNodeSetParams_v2)(CUgraphExec hGraphExec, CUgraphNode hNode,
                                                      const CUDA_KERNEL_NODE_PARAMS* nodeParams) {
  if (!nodeParams) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock;
  return set_work(hGraphExec, hNode, {});
}

CUresult SIM_ENTRY(cuGraphExecMemcpyNodeSetParams)(CUgraphExec hGraphExec, CUgraphNode hNode,
                                                   const CUDA_MEMCPY3D* copyParams, CUcontext) {
  if (!copyParams) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock;
  Work work;
  SIM_TRY(plan_copy(*copyParams, &work));
  return set_work(hGraphExec, hNode, std::move(work));
}

CUresult SIM_ENTRY(cuGraphExecMemsetNodeSetParams)(CUgraphExec hGraphExec, CUgraphNode hNode,
                                                   const CUDA_MEMSET_NODE_PARAMS* params, CUcontext) {
  if (!params) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock;
  Work work;
  SIM_TRY(plan_fill(params->dst, params->pitch, params->value, params->elementSize, params->width,
                    params->height, &work));
  return set_work(hGraphExec, hNode, std::move(work));
}

CUresult SIM_ENTRY(cuGraphExecUpdate_v2)(CUgraphExec hGraphExec, CUgraph hGraph,
                                         CUgraphExecUpdateResultInfo* result) {
  if (!result) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock;
  Executable* executable = executables().find(hGraphExec);
  const Graph* graph = state().graphs.find(hGraph);
  if (!executable || !graph) return CUDA_ERROR_INVALID_VALUE;
  *result = {};
  if (graph->nodes.size() != executable->nodes.size()) {
    result->result = CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
    return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
  }
  fill(*executable, hGraph, *graph);
  return CUDA_SUCCESS;
}

CUresult SIM_ENTRY(cuGraphUpload)(CUgraphExec hGraphExec, CUstream) {
  const Lock lock;
  return executables().find(hGraphExec) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult SIM_ENTRY(cuGraphLaunch)(CUgraphExec hGraphExec, CUstream hStream) {
  Lock lock;
  Stream* stream = nullptr;
  SIM_TRY(find_stream(hStream, &stream));
  const Executable* executable = executables().find(hGraphExec);
  if (!executable) return CUDA_ERROR_INVALID_VALUE;
  return submit(lock, stream, CU_GRAPH_NODE_TYPE_GRAPH, [work = executable->work] { run_nodes(work); });
}

}  // namespace sim
