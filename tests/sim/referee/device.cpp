// The simulator's exports, found once it is loaded; see device.hpp.
#include "device.hpp"

#include <atomic>

#include "../driver/tickets.h"
#include "interpose.hpp"

namespace referee {
namespace {

struct Simulator {
  decltype(&::simTails) tails;
  decltype(&::simTailOf) tail_of;
  decltype(&::simTicketDone) done;
  decltype(&::simTicketOrdered) ordered;
  decltype(&::simCapturing) capturing;
  decltype(&::simContextId) context_id;
  decltype(&::simPrimaryContextId) primary_context_id;
};

template <typename Function>
bool find(const char* name, Function* function) {
  *function = reinterpret_cast<Function>(of_simulator(name));
  return *function != nullptr;
}

// Null until a simulated driver is loaded.
const Simulator* simulator() {
  static std::atomic<const Simulator*> known{nullptr};
  if (const Simulator* found = known.load(std::memory_order_acquire)) return found;
  Simulator found{};
  if (!find("simTails", &found.tails) || !find("simTailOf", &found.tail_of) ||
      !find("simTicketDone", &found.done) || !find("simTicketOrdered", &found.ordered) ||
      !find("simCapturing", &found.capturing) || !find("simContextId", &found.context_id) ||
      !find("simPrimaryContextId", &found.primary_context_id))
    return nullptr;
  const Simulator* kept = new Simulator(found);
  known.store(kept, std::memory_order_release);
  return kept;
}

}  // namespace

bool simulated() { return simulator() != nullptr; }

Tickets tails() {
  Tickets result;
  if (!simulated()) return result;
  std::vector<SimTail> all(16);
  for (;;) {
    const std::size_t count = simulator()->tails(all.data(), all.size());
    const bool enough = count <= all.size();
    all.resize(count);
    if (enough) break;
  }
  for (const SimTail& tail : all) result.push_back({tail.stream, tail.ticket});
  return result;
}

Tickets tail_of(CUstream stream, bool per_thread) {
  SimTail tail{};
  if (!simulated() || !simulator()->tail_of(stream, per_thread, &tail)) return {};
  return {{tail.stream, tail.ticket}};
}

bool over(const Ticket& ticket) { return simulator()->done(ticket.stream, ticket.number); }
bool ordered_before(const Ticket& ticket, CUstream stream, bool per_thread) {
  return simulator()->ordered(ticket.stream, ticket.number, stream, per_thread);
}
bool capturing(CUstream stream, bool per_thread) { return simulator()->capturing(stream, per_thread); }
std::uint64_t current_context() { return simulator()->context_id(nullptr); }
std::uint64_t id_of(CUcontext context) {
  return simulated() && context ? simulator()->context_id(context) : 0;
}
std::uint64_t primary_context(CUdevice device) {
  return simulated() ? simulator()->primary_context_id(device) : 0;
}

}  // namespace referee
