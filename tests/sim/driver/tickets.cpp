// The referee's questions; see tickets.h.
#include "tickets.h"

#include "call.hpp"
#include "state.hpp"

using namespace sim;

namespace {

// Without a tick: who asks must not change what comes. A forked child's driver is dead.
using Quiet = std::lock_guard<std::mutex>;

bool running() { return life() == Life::running || life() == Life::over; }

Stream* stream_of(CUstream handle, bool per_thread) {
  Stream* stream = nullptr;
  if (!handle && per_thread) handle = CU_STREAM_PER_THREAD;
  find_stream(handle, &stream);
  return stream;
}

}  // namespace

extern "C" {

SIM_EXPORT size_t simTails(SimTail* tails, size_t room) {
  if (!running()) return 0;
  const Quiet lock(driver_mutex());
  size_t count = 0;
  for (const auto& [id, lane] : timeline().lanes()) {
    if (lane->hidden || lane->done == lane->issued) continue;
    if (count < room) tails[count] = {lane->context->id, id, lane->issued};
    ++count;
  }
  return count;
}

SIM_EXPORT int simTailOf(CUstream stream, int per_thread, SimTail* tail) {
  if (!running()) return 0;
  const Quiet lock(driver_mutex());
  const Stream* found = stream_of(stream, per_thread);
  if (!found) return 0;
  *tail = {found->context->id, found->lane->id, found->lane->issued};
  return 1;
}

SIM_EXPORT int simTicketDone(unsigned long long stream, unsigned long long ticket) {
  if (!running()) return 1;
  const Quiet lock(driver_mutex());
  return timeline().done(stream, ticket);
}

SIM_EXPORT int simTicketOrdered(unsigned long long stream, unsigned long long ticket, CUstream next,
                                int per_thread) {
  if (!running()) return 1;
  const Quiet lock(driver_mutex());
  if (timeline().done(stream, ticket)) return 1;
  const Stream* on = stream_of(next, per_thread);
  return on && timeline().ordered(stream, ticket, *on->lane);
}

SIM_EXPORT int simCapturing(CUstream stream, int per_thread) {
  if (!running()) return 0;
  const Quiet lock(driver_mutex());
  const Stream* found = stream_of(stream, per_thread);
  return found && found->capture;
}

SIM_EXPORT unsigned long long simContextId(CUcontext context) {
  if (!running()) return 0;
  const Quiet lock(driver_mutex());
  const Context* found = state().find_context(context ? context : current_handle());
  return found ? found->id : 0;
}

SIM_EXPORT unsigned long long simPrimaryContextId(int device) {
  if (!running()) return 0;
  const Quiet lock(driver_mutex());
  const auto ordinal = static_cast<std::size_t>(device);
  return valid_device(device) && state().primary_active[ordinal] ? state().primary[ordinal]->id : 0;
}

SIM_EXPORT size_t simPending(void) {
  if (!running()) return 0;
  const Quiet lock(driver_mutex());
  return timeline().pending();
}

SIM_EXPORT unsigned long long simClock(void) {
  if (!running()) return 0;
  const Quiet lock(driver_mutex());
  return static_cast<unsigned long long>(timeline().clock());
}

}  // extern "C"
