// What graphs own beside their nodes.
#pragma once
#include <cuda.h>

#include <cstdint>

namespace sim {

// Memory that a captured cuMemAllocAsync gave to a graph: it lives as long as the graph and what
// was instantiated from it.
void own_by_graph(CUgraph graph, std::uint64_t base);
bool owned_by_graph(CUgraph graph, std::uint64_t base);

}  // namespace sim
