// Looks for work that uses memory which is gone: before memory is released, whether queued work may
// still use it, and at an operation's moment, whether what it uses is there.
//
// Certain where the ranges are known (copies, fills, the simulator's own kernels); a foreign kernel
// may use all memory that its device has access to, so that it is only "possible".
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "state.hpp"
#include "timeline.hpp"

namespace sim {

// Before [base, base + bytes) goes: reports what is queued, from no later than sequence, and may use
// it. Devices is a bit for each that has access.
void check_release(const char* how, std::uint64_t base, std::uint64_t bytes, unsigned devices,
                   std::uint64_t sequence = ~0ull);

// At the moment of an operation of this context: whether all that it uses is there. If not, the
// context is broken (CUDA_ERROR_ILLEGAL_ADDRESS), and stays so. With `on_device` the device itself
// reads and writes, so it must have access.
bool check_touches(Context& context, const char* name, const std::vector<Touch>& touches, bool on_device);

// Memory that is freed in the order of a stream is there until that moment. Known by a number of its
// own.
void add_dying(std::uint64_t base, std::uint64_t bytes, std::uint64_t number);
void remove_dying(std::uint64_t number);

struct Violations {
  std::vector<std::string> certain, possible;
};
const Violations& violations();

}  // namespace sim
