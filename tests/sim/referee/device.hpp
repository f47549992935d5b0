// What the referee asks of the simulated device, by the simulator's own exports (driver/tickets.h), which
// neither count nor log nor move its clock.
#pragma once
#include <cuda.h>

#include "burials.hpp"

namespace referee {

bool simulated();  // false: another driver is loaded, and the referee cannot judge

Tickets tails();                                    // of every stream with work that is not over
Tickets tail_of(CUstream stream, bool per_thread);  // the same of one
bool over(const Ticket& ticket);
// Before anything that is queued on the stream from here on.
bool ordered_before(const Ticket& ticket, CUstream stream, bool per_thread);
bool capturing(CUstream stream, bool per_thread);
std::uint64_t current_context();  // 0: none
std::uint64_t id_of(CUcontext context);
std::uint64_t primary_context(CUdevice device);

}  // namespace referee
