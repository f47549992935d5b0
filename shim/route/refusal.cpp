// A request that could not be served: told of, perhaps waited for, refused. Nothing here is allocated before
// the diagnosis has what it needs: the host may be short of memory as well.
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <string_view>

#include "shim/base/clock.hpp"
#include "shim/route/router.hpp"
#include "shim/route/traced.hpp"

namespace tidepool {
namespace {

using Clock = std::chrono::steady_clock;

// By system call: the C library's is a point at which a thread may be cancelled.
void sleep_for(std::chrono::milliseconds time) {
  const timespec pause{time.count() / 1000, (time.count() % 1000) * 1000000};
  ::syscall(SYS_nanosleep, &pause, nullptr);
}

const char* variable_of_process(const char* name) { return std::getenv(name); }

}  // namespace

report::Failure Router::describe(Device* device, const char* entry, Bytes bytes) {
  report::Failure failure;
  failure.entry = entry;
  failure.requested = failure.tried_first = bytes;
  failure.pid = ::getpid();
  failure.mode = mode_name(settings_.mode);
  failure.variable = &variable_of_process;
  if (device == nullptr) return failure;
  std::size_t free = 0;
  std::size_t total = 0;
  // passthrough makes no memory call of its own: its counts are the driver's.
  if (settings_.mode != Mode::passthrough && driver.cuMemGetInfo_v2(&free, &total) == CUDA_SUCCESS)
    failure.free = free;
  const Snapshot held = device->snapshot();
  const Device::Requested requested = device->requested();
  failure.device = device->ordinal;
  failure.device_name = device->name;
  failure.uuid = device->uuid;
  failure.total = device->total;
  if (device->account.limit() != kUnlimited) failure.limit = device->account.limit();
  if (device->pool_share.limited()) failure.framework_share = device->pool_share.size();
  failure.live = requested.now;
  failure.peak = requested.peak;
  failure.cached = held.cached + device->idle_handles.bytes();
  failure.held = device->account.reserved.now();
  failure.largest_hole = held.largest_free;
  failure.allocations_before = device->account.allocations();
  return failure;
}

// A pool that a framework made for itself, if it has one.
Bytes Router::largest_block(int device) {
  Bytes most = std::max(ledger_.largest(device), mappings_.largest(device));
  if (devices().empty() || !device_at(device).has_policy()) return most;
  device_at(device).policy().each_live(
      [&](const Block& block) { most = std::max<Bytes>(most, block.label.requested); });
  return most;
}

void Router::announce(report::Failure& failure, bool final) {
  report::Name<2048> python_stack;
  if (look_at_caller_ != nullptr) look_at_caller_(failure, python_stack);
  if (failure.library || report::purpose_of(failure.entry) == report::Purpose::driver_needs)
    failure.largest_block = largest_block(failure.device);
  announcer_.refused(failure, python_stack.view(), final);
}

// How long a call that has just been refused may wait for memory to come free, whoever frees it.
Refusals::Patience Router::patience_with(Device& device, Bytes bytes, bool hopeless) {
  Refusals::Patience patience = device.refusals.note(bytes);
  if (!settings_.wait || (hopeless && *settings_.wait > 0)) return patience;
  constexpr double kForever = 1e9;  // seconds
  return {std::chrono::milliseconds(static_cast<std::int64_t>(std::min(*settings_.wait, kForever) * 1000)),
          bytes};
}

// Nothing: it cannot be asked. passthrough makes no memory call of its own.
std::optional<Bytes> Router::could_get(Device& device) {
  std::size_t free = 0;
  std::size_t total = 0;
  if (settings_.mode == Mode::passthrough) return free_on_machine_(device.uuid.c_str());
  if (driver.cuMemGetInfo_v2(&free, &total) != CUDA_SUCCESS) return std::nullopt;
  return could_get(device, free);
}

// Without a lock; CUDA_ERROR_OUT_OF_MEMORY when the time is over. An attempt in vain would cost other threads
// what is cached, so it is made when it may succeed.
CUresult Router::wait_for_memory(Device& device, Bytes bytes, const Refusals::Patience& patience,
                                 const Pass& again) {
  constexpr std::chrono::milliseconds kSlice{20};
  const Clock::time_point deadline = Clock::now() + patience.wait;
  while (Clock::now() < deadline && !gate_.capturing()) {
    sleep_for(std::min(kSlice, std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now())));
    const Bytes free = could_get(device).value_or(0);
    if (free >= bytes)
      if (const CUresult result = again(); result != CUDA_ERROR_OUT_OF_MEMORY) return result;
    if (free >= patience.enough) break;
  }
  return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult Router::refuse(Device& device, Bytes bytes, const Pass& again) {
  report::Failure failure = describe(&device, again.entry(), bytes);
  const bool of_share =
      std::string_view(again.entry()).starts_with("cuMemAllocFromPool") && device.pool_share.left() < bytes;
  if (of_share)
    failure.refused_by = report::RefusedBy::framework_share;
  else if (device.account.left() < bytes)
    failure.refused_by = report::RefusedBy::limit;
  announce(failure, false);
  const bool hopeless = bytes > std::min(device.total, device.account.limit()) || of_share;
  const CUresult result = wait_for_memory(device, bytes, patience_with(device, bytes, hopeless), again);
  if (result != CUDA_ERROR_OUT_OF_MEMORY) {
    if (result == CUDA_SUCCESS) served_after_all(device, bytes);
    return result;
  }
  traced::refused(device, bytes);
  try {
    device.record_out_of_memory(
        {utc_now(), again.entry(), bytes, failure.free, failure.total, failure.live, failure.held});
    on_out_of_memory_();
  } catch (const std::bad_alloc&) {
    // The report goes without.
  }
  return CUDA_ERROR_OUT_OF_MEMORY;
}

void Router::served_after_all(Device& device, Bytes bytes) {
  device.refusals.forget(bytes);
  if (announcer_.open()) announcer_.served(device.ordinal, bytes);
}

// The codes that a process meets at its start on a GPU that it may not, or cannot, have (cuda.h, CUresult).
CUresult Router::fail_to_start(int device, const Pass& pass, CUresult result) {
  const bool known = result == CUDA_ERROR_OUT_OF_MEMORY || result == CUDA_ERROR_DEVICE_UNAVAILABLE ||
                     result == CUDA_ERROR_INVALID_DEVICE;
  // An ordinal that no device has is the program's own mistake.
  if (!known || !find_devices() || device < 0 || static_cast<std::size_t>(device) >= devices_.size())
    return result;
  report::Failure failure = describe(&device_at(device), pass.entry(), 0);
  failure.error = result;
  announce(failure, true);
  return result;
}

// A call that is not about an amount of device memory, and failed for want of memory.
CUresult Router::fail(const Pass& pass, CUresult result) {
  report::Failure failure = describe(current_device(), pass.entry(), 0);
  failure.error = result;
  announce(failure, false);
  return result;
}

}  // namespace tidepool
