// Graphs: made by hand or by capture, instantiated, launched. A launch puts the nodes on its stream one
// behind the other, in the order in which they were added; conditional nodes are not known.
#include <algorithm>

#include "call.hpp"
#include "capture.hpp"
#include "copy.hpp"
#include "entries.hpp"
#include "graph.hpp"
#include "kernels.hpp"
#include "state.hpp"

namespace sim {
namespace {

// Ends with the last of a graph, its executables and their launches.
struct GraphMemory {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> blocks;  // base, id
  ~GraphMemory() {
    for (const auto& [base, id] : blocks)
      if (const auto at = state().blocks.find(base); at != state().blocks.end() && at->second.id == id)
        free_block(at);
  }
};

struct Executable {
  std::vector<Works> works;             // of each node
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
             CUgraphNodeType type, Works works) {
  if (!handle || (count && !dependencies)) return CUDA_ERROR_INVALID_VALUE;
  Graph* graph = state().graphs.find(into);
  if (!graph) return CUDA_ERROR_INVALID_VALUE;
  auto node = std::make_unique<GraphNode>();
  node->type = type;
  node->works = std::move(works);
  node->graph = graph;
  for (std::size_t i = 0; i < count; ++i)
    node->dependencies.push_back(reinterpret_cast<GraphNode*>(dependencies[i]));
  graph->nodes.push_back(std::move(node));
  *handle = reinterpret_cast<CUgraphNode>(graph->nodes.back().get());
  return CUDA_SUCCESS;
}

Works one(Work work) {
  Works works;
  works.push_back(std::move(work));
  return works;
}

Works host_works(CUhostFn function, void* data) {
  Work work;
  work.kind = Work::Kind::host;
  work.name = "a host function";
  work.call = [function, data](CUresult result) {
    if (result == CUDA_SUCCESS) function(data);
  };
  return one(std::move(work));
}

Works child_works(CUgraph handle) {
  Works works;
  if (const Graph* child = state().graphs.find(handle))
    for (const auto& node : child->nodes) works.insert(works.end(), node->works.begin(), node->works.end());
  return works;
}

CUresult copy_works(const CUDA_MEMCPY3D& parameters, Works* works) {
  Copy copy{};
  SIM_TRY(plan_copy(parameters, &copy));
  *works = one(copy.empty() ? Work{} : copy.work());
  return CUDA_SUCCESS;
}

CUresult fill_works(const CUDA_MEMSET_NODE_PARAMS& params, Works* works) {
  Work work;
  SIM_TRY(plan_fill(params.dst, params.pitch, params.value, params.elementSize, params.width, params.height,
                    &work));
  *works = one(std::move(work));
  return CUDA_SUCCESS;
}

// A function that is not known is a kernel (CUkernel) of a library that was not loaded here: foreign.
CUresult kernel_works(CUfunction handle, void** parameters, void** extra, Works* works) {
  const auto at = state().functions.find(handle);
  static const Function unknown;
  Work work;
  SIM_TRY(kernel_work(at == state().functions.end() ? unknown : *at->second, parameters, extra, &work));
  *works = one(std::move(work));
  return CUDA_SUCCESS;
}

CUresult works_of(const CUgraphNodeParams& params, Works* works) {
  switch (params.type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
      return kernel_works(
          params.kernel.func ? params.kernel.func : reinterpret_cast<CUfunction>(params.kernel.kern),
          params.kernel.kernelParams, params.kernel.extra, works);
    case CU_GRAPH_NODE_TYPE_EMPTY:
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD: *works = Works(1); return CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_MEMCPY: return copy_works(params.memcpy.copyParams, works);
    case CU_GRAPH_NODE_TYPE_MEMSET: {
      const auto& set = params.memset;
      return fill_works({set.dst, set.pitch, set.value, set.elementSize, set.width, set.height}, works);
    }
    case CU_GRAPH_NODE_TYPE_HOST:
      *works = host_works(params.host.fn, params.host.userData);
      return CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_GRAPH: *works = child_works(params.graph.graph); return CUDA_SUCCESS;
    default: return CUDA_ERROR_NOT_SUPPORTED;
  }
}

void fill(Executable& executable, CUgraph handle, const Graph& graph) {
  executable.works.clear();
  executable.nodes.clear();
  for (const auto& node : graph.nodes) {
    executable.nodes.push_back(node.get());
    executable.works.push_back(node->works);
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

CUresult set_works(CUgraphExec handle, CUgraphNode node, Works works) {
  Executable* executable = executables().find(handle);
  if (!executable) return CUDA_ERROR_INVALID_VALUE;
  for (std::size_t i = 0; i < executable->nodes.size(); ++i) {
    if (executable->nodes[i] != reinterpret_cast<const GraphNode*>(node)) continue;
    executable->works[i] = std::move(works);
    return CUDA_SUCCESS;
  }
  return CUDA_ERROR_INVALID_VALUE;
}

}  // namespace

void own_by_graph(CUgraph graph, std::uint64_t base) {
  auto& memory = memories()[graph];
  if (!memory) memory = std::make_shared<GraphMemory>();
  memory->blocks.emplace_back(base, state().blocks.at(base).id);
}

bool owned_by_graph(CUgraph graph, std::uint64_t base) {
  const auto at = memories().find(graph);
  if (at == memories().end()) return false;
  return std::any_of(at->second->blocks.begin(), at->second->blocks.end(),
                     [base](const auto& block) { return block.first == base; });
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
  Works works;
  SIM_TRY(works_of(*nodeParams, &works));
  return add(phGraphNode, hGraph, dependencies, numDependencies, nodeParams->type, std::move(works));
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
  Works works;
  SIM_TRY(kernel_works(nodeParams->func, nodeParams->kernelParams, nodeParams->extra, &works));
  return add(phGraphNode, hGraph, dependencies, numDependencies, CU_GRAPH_NODE_TYPE_KERNEL, std::move(works));
}

CUresult SIM_ENTRY(cuGraphAddEmptyNode)(CUgraphNode* phGraphNode, CUgraph hGraph,
                                        const CUgraphNode* dependencies, size_t numDependencies) {
  const Lock lock;
  return add(phGraphNode, hGraph, dependencies, numDependencies, CU_GRAPH_NODE_TYPE_EMPTY, Works(1));
}

CUresult SIM_ENTRY(cuGraphAddHostNode)(CUgraphNode* phGraphNode, CUgraph hGraph,
                                       const CUgraphNode* dependencies, size_t numDependencies,
                                       const CUDA_HOST_NODE_PARAMS* nodeParams) {
  if (!nodeParams || !nodeParams->fn) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock;
  return add(phGraphNode, hGraph, dependencies, numDependencies, CU_GRAPH_NODE_TYPE_HOST,
             host_works(nodeParams->fn, nodeParams->userData));
}

CUresult SIM_ENTRY(cuGraphAddMemcpyNode)(CUgraphNode* phGraphNode, CUgraph hGraph,
                                         const CUgraphNode* dependencies, size_t numDependencies,
                                         const CUDA_MEMCPY3D* copyParams, CUcontext) {
  if (!copyParams) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock;
  Works works;
  SIM_TRY(copy_works(*copyParams, &works));
  return add(phGraphNode, hGraph, dependencies, numDependencies, CU_GRAPH_NODE_TYPE_MEMCPY, std::move(works));
}

CUresult SIM_ENTRY(cuGraphAddMemsetNode)(CUgraphNode* phGraphNode, CUgraph hGraph,
                                         const CUgraphNode* dependencies, size_t numDependencies,
                                         const CUDA_MEMSET_NODE_PARAMS* params, CUcontext) {
  if (!params) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock;
  Works works;
  SIM_TRY(fill_works(*params, &works));
  return add(phGraphNode, hGraph, dependencies, numDependencies, CU_GRAPH_NODE_TYPE_MEMSET, std::move(works));
}

CUresult SIM_ENTRY(cuGraphAddChildGraphNode)(CUgraphNode* phGraphNode, CUgraph hGraph,
                                             const CUgraphNode* dependencies, size_t numDependencies,
                                             CUgraph childGraph) {
  const Lock lock;
  if (!state().graphs.find(childGraph)) return CUDA_ERROR_INVALID_VALUE;
  return add(phGraphNode, hGraph, dependencies, numDependencies, CU_GRAPH_NODE_TYPE_GRAPH,
             child_works(childGraph));
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
  Works works;
  SIM_TRY(kernel_works(nodeParams->func, nodeParams->kernelParams, nodeParams->extra, &works));
  return set_works(hGraphExec, hNode, std::move(works));
}

CUresult SIM_ENTRY(cuGraphExecMemcpyNodeSetParams)(CUgraphExec hGraphExec, CUgraphNode hNode,
                                                   const CUDA_MEMCPY3D* copyParams, CUcontext) {
  if (!copyParams) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock;
  Works works;
  SIM_TRY(copy_works(*copyParams, &works));
  return set_works(hGraphExec, hNode, std::move(works));
}

CUresult SIM_ENTRY(cuGraphExecMemsetNodeSetParams)(CUgraphExec hGraphExec, CUgraphNode hNode,
                                                   const CUDA_MEMSET_NODE_PARAMS* params, CUcontext) {
  if (!params) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock;
  Works works;
  SIM_TRY(fill_works(*params, &works));
  return set_works(hGraphExec, hNode, std::move(works));
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
  const Lock lock;
  Stream* stream = nullptr;
  SIM_TRY(find_stream(hStream, &stream));
  const Executable* executable = executables().find(hGraphExec);
  if (!executable) return CUDA_ERROR_INVALID_VALUE;
  Works all;
  for (const Works& works : executable->works) all.insert(all.end(), works.begin(), works.end());
  Work last;  // what the graph allocated lives at least as long as the launch
  last.effect = [memory = executable->memory](Context&) {};
  all.push_back(std::move(last));
  return submit(stream, CU_GRAPH_NODE_TYPE_GRAPH, std::move(all));
}

}  // namespace sim
