// What the generated table of entries says of one exported symbol.
#pragma once

namespace sim {

// The CUDA version that brought this exported symbol; 0 for a name that is not in the table.
int version_of(const char* symbol);

}  // namespace sim
