// How the simulated driver behaves where the program's test decides: the pace of the virtual clock,
// what the detector reports, and the guesses. Read once from the environment, beside settings.hpp,
// which says what machine is simulated.
#pragma once
#include <cstdint>

namespace sim {

struct Rules {
  std::int64_t call_ns = 1000;     // SIM_CALL_NS: what a call of the driver takes
  std::int64_t kernel_ns = 10000;  // SIM_KERNEL_NS: what a kernel takes that does not say
  std::uint64_t schedule = 0;      // SIM_SCHED: seed of another order of independent work; 0: none
  bool report_possible = false;    // SIM_DETECT=all: also what may be wrong, since a kernel is foreign
  // Guesses by name, as guesses.def lists them.
#define SIM_GUESS_ROW(name, value, meaning) int name = value;
#include "guesses.def"
#undef SIM_GUESS_ROW
};

const Rules& rules();

}  // namespace sim
