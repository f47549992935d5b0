// SIM_COST: what the calls of this process would have taken in a real driver, added up without
// sleeping, so that two ways of allocating can be compared on any machine.
#pragma once
#include <cstddef>
#include <nlohmann/json_fwd.hpp>

namespace sim {

bool costs_asked();
void add_cost(int entry, std::size_t bytes);
void forget_costs();  // in a child: its sums are its own

// {"profile", "total_ns", "entries": {name: ns}}
nlohmann::ordered_json modelled_costs();

}  // namespace sim
