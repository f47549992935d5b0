// The order of the questions matters: what is certain (an error code, a limit that was reached) comes before
// what is computed from numbers of several sources.
#include "shim/report/cause.hpp"

#include <algorithm>

namespace tidepool::report {
namespace {

constexpr int kOutOfMemory = 2;  // CUDA_ERROR_OUT_OF_MEMORY

constexpr struct {
  Cause cause;
  const char* name;
} kNames[] = {{Cause::not_memory, "not_memory"},
              {Cause::host_memory, "host_memory"},
              {Cause::context, "context"},
              {Cause::own_limit, "own_limit"},
              {Cause::framework_share, "framework_share"},
              {Cause::capacity, "capacity"},
              {Cause::own_use, "own_use"},
              {Cause::other_processes, "other_processes"},
              {Cause::own_pool, "own_pool"},
              {Cause::fragmentation, "fragmentation"},
              {Cause::unknown, "unknown"}};

// One block of half the device is a pool: no array of a program is.
bool has_own_pool(const Failure& failure) { return failure.largest_block >= failure.total / 2; }

// What the driver takes for a kernel's code, a handle of cuDNN or cuBLAS, a communicator of NCCL.
bool is_for_a_library(const Failure& failure) {
  return purpose_of(failure.entry) == Purpose::driver_needs || failure.library;
}

}  // namespace

const char* cause_name(Cause cause) {
  for (const auto& known : kNames)
    if (known.cause == cause) return known.name;
  return "?";
}

Cause find_cause(const Failure& failure) {
  const Purpose purpose = purpose_of(failure.entry);
  if (failure.error != kOutOfMemory) return Cause::not_memory;
  if (purpose == Purpose::host_memory) return Cause::host_memory;
  if (failure.refused_by == RefusedBy::limit) return Cause::own_limit;
  if (failure.refused_by == RefusedBy::framework_share) return Cause::framework_share;
  if (failure.requested > failure.total && failure.total > 0) return Cause::capacity;
  if (purpose == Purpose::context) return Cause::context;

  const Bytes others = failure.held_by_others();
  // A call that does not say how much it wanted wanted a little.
  const Bytes wanted = failure.requested == 0 ? 2 * kMiB : failure.requested;
  const Bytes left = failure.total - std::min(failure.total, failure.held);
  // A management library that counts less than this process holds does not see it.
  const Bytes free = std::min(failure.known_free().value_or(left - std::min(left, others)), left);
  if (is_for_a_library(failure) && has_own_pool(failure) && failure.held > others) return Cause::own_pool;
  if (free >= wanted) return failure.cached >= wanted ? Cause::fragmentation : Cause::unknown;
  if (free + failure.cached >= wanted) return Cause::fragmentation;
  if (failure.held - std::min(failure.held, failure.cached) + wanted > failure.total) return Cause::own_use;
  const Bytes missing = wanted - free - failure.cached;
  if (others - failure.unattributed() >= missing) return Cause::other_processes;
  // Less may be this process's own context, where the driver's library does not list it (a container).
  if (failure.unattributed() >= std::max(missing, 1024 * kMiB)) return Cause::other_processes;
  return failure.requested > failure.total - failure.total / 16 ? Cause::capacity : Cause::unknown;
}

}  // namespace tidepool::report
