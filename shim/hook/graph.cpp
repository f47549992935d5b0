// Exported wrappers: memory of graphs, which is the driver's, and calls that take memory for graphs.
#include "shim/hook/passage.hpp"

using namespace tidepool;

#pragma GCC visibility push(default)

CUresult cuDeviceGetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attr, void* value) {
  return forward<Hook::cuDeviceGetGraphMemAttribute>(device, attr, value);
}
CUresult cuDeviceSetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attr, void* value) {
  return forward<Hook::cuDeviceSetGraphMemAttribute>(device, attr, value);
}
CUresult cuDeviceGraphMemTrim(CUdevice device) { return forward<Hook::cuDeviceGraphMemTrim>(device); }
CUresult cuGraphAddMemAllocNode(CUgraphNode* phGraphNode, CUgraph hGraph, const CUgraphNode* dependencies,
                                size_t numDependencies, CUDA_MEM_ALLOC_NODE_PARAMS* nodeParams) {
  return forward<Hook::cuGraphAddMemAllocNode>(phGraphNode, hGraph, dependencies, numDependencies,
                                               nodeParams);
}
CUresult cuGraphAddMemFreeNode(CUgraphNode* phGraphNode, CUgraph hGraph, const CUgraphNode* dependencies,
                               size_t numDependencies, CUdeviceptr dptr) {
  return forward<Hook::cuGraphAddMemFreeNode>(phGraphNode, hGraph, dependencies, numDependencies, dptr);
}
CUresult cuGraphAddNode(CUgraphNode* phGraphNode, CUgraph hGraph, const CUgraphNode* dependencies,
                        size_t numDependencies, CUgraphNodeParams* nodeParams) {
  return forward<Hook::cuGraphAddNode>(phGraphNode, hGraph, dependencies, numDependencies, nodeParams);
}
CUresult cuGraphAddNode_v2(CUgraphNode* phGraphNode, CUgraph hGraph, const CUgraphNode* dependencies,
                           const CUgraphEdgeData* dependencyData, size_t numDependencies,
                           CUgraphNodeParams* nodeParams) {
  return forward<Hook::cuGraphAddNode_v2>(phGraphNode, hGraph, dependencies, dependencyData, numDependencies,
                                          nodeParams);
}
CUresult cuGraphInstantiate(CUgraphExec* phGraphExec, CUgraph hGraph, CUgraphNode* phErrorNode,
                            char* logBuffer, size_t bufferSize) {
  return forward<Hook::cuGraphInstantiate>(phGraphExec, hGraph, phErrorNode, logBuffer, bufferSize);
}
CUresult cuGraphInstantiate_v2(CUgraphExec* phGraphExec, CUgraph hGraph, CUgraphNode* phErrorNode,
                               char* logBuffer, size_t bufferSize) {
  return forward<Hook::cuGraphInstantiate_v2>(phGraphExec, hGraph, phErrorNode, logBuffer, bufferSize);
}
CUresult cuGraphInstantiateWithFlags(CUgraphExec* phGraphExec, CUgraph hGraph, unsigned long long flags) {
  return forward<Hook::cuGraphInstantiateWithFlags>(phGraphExec, hGraph, flags);
}
CUresult cuGraphInstantiateWithParams(CUgraphExec* phGraphExec, CUgraph hGraph,
                                      CUDA_GRAPH_INSTANTIATE_PARAMS* instantiateParams) {
  return forward<Hook::cuGraphInstantiateWithParams>(phGraphExec, hGraph, instantiateParams);
}
CUresult cuGraphInstantiateWithParams_ptsz(CUgraphExec* phGraphExec, CUgraph hGraph,
                                           CUDA_GRAPH_INSTANTIATE_PARAMS* instantiateParams) {
  return forward<Hook::cuGraphInstantiateWithParams_ptsz>(phGraphExec, hGraph, instantiateParams);
}
CUresult cuGraphExecUpdate(CUgraphExec hGraphExec, CUgraph hGraph, CUgraphNode* hErrorNode_out,
                           CUgraphExecUpdateResult* updateResult_out) {
  return forward<Hook::cuGraphExecUpdate>(hGraphExec, hGraph, hErrorNode_out, updateResult_out);
}
CUresult cuGraphExecUpdate_v2(CUgraphExec hGraphExec, CUgraph hGraph,
                              CUgraphExecUpdateResultInfo* resultInfo) {
  return forward<Hook::cuGraphExecUpdate_v2>(hGraphExec, hGraph, resultInfo);
}
CUresult cuGraphUpload(CUgraphExec hGraph, CUstream hStream) {
  return forward<Hook::cuGraphUpload>(hGraph, hStream);
}
CUresult cuGraphUpload_ptsz(CUgraphExec hGraphExec, CUstream hStream) {
  return forward<Hook::cuGraphUpload_ptsz>(hGraphExec, hStream);
}

#pragma GCC visibility pop
