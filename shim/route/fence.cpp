// What the device has to finish before memory is reused or handed back. No lock is held over a wait: a host
// callback of the application may need one.
#include <algorithm>
#include <new>

#include "shim/route/router.hpp"

namespace tidepool {

Router::WaitResult Router::wait_for_devices() {
  const CaptureGate::Passage passage(gate_);
  if (passage.capturing()) return {Waited::impossible};
  // Of every device: a copy between two runs on a stream of either.
  const CUresult result = synchronize(contexts_.all());
  if (result == CUDA_SUCCESS) return {Waited::done};
  // A capture that began by a way we do not see.
  if (result == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED) return {Waited::impossible, result};
  return {Waited::failed, result};
}

Router::WaitResult Router::fence(Device& device) {
  const Fence opened = device.policy().open_fence();
  const WaitResult result = wait_for_devices();
  if (result.waited == Waited::done) device.policy().close_fence(opened);
  return result;
}

// The caller's current context too, if nobody saw how it came to be.
std::vector<CUcontext> Router::contexts_in_use() const {
  std::vector<CUcontext> contexts = contexts_.all();
  CUcontext current = nullptr;
  if (driver.cuCtxGetCurrent(&current) == CUDA_SUCCESS && current != nullptr &&
      std::find(contexts.begin(), contexts.end(), current) == contexts.end())
    contexts.push_back(current);
  return contexts;
}

// The events of every context that work may run in.
EventFence::Answer Router::ask_events(Device& device) {
  const CaptureGate::Passage passage(gate_);
  if (passage.capturing()) return {EventFence::Progress::impossible, {}};
  return device.events.advance(contexts_in_use(), [&] { return device.policy().open_fence(); });
}

// Without waiting. A driver without events for whole contexts can only be waited for.
EventFence::Progress Router::advance_fence(Device& device) {
  const EventFence::Answer events = ask_events(device);
  // Outside the gate: the engine goes through it with its own lock held, when it asks for memory.
  if (events.progress == EventFence::Progress::done) device.policy().close_fence(events.fence);
  if (events.progress != EventFence::Progress::impossible) return events.progress;
  return fence(device).waited == Waited::done ? EventFence::Progress::done : EventFence::Progress::impossible;
}

// Memory that completed fences free goes before growth, growth before a wait, a wait before a refusal: a
// wait can be for a kernel that this very thread is about to launch for another's sake (NCCL).
Result<Block> Router::find_memory(Device& device, Request request) {
  request.fence_possible = !gate_.capturing();
  bool waited = false;
  // Others may take what a fence frees; after a few rounds the answer stands.
  for (int round = 0;; ++round) {
    Result<Block> block = device.policy().allocate(request);
    if (block || block.failure().reason != Reason::needs_fence) return block;
    if (round < kMostFences && advance_fence(device) == EventFence::Progress::done) continue;
    request.fence_possible = false;
    block = device.policy().allocate(request);
    const bool short_of_memory = !block && (block.failure().reason == Reason::out_of_memory ||
                                            block.failure().reason == Reason::limit);
    if (!short_of_memory || waited || fence(device).waited != Waited::done) return block;
    request.fence_possible = waited = true;
  }
}

// For a driver that has run out: everything that is cached, on every device. False: there was nothing, or the
// host has no memory either, in which case the device's answer stands.
bool Router::hand_back_cache() try {
  Bytes handed_back = give_back_idle_handles() + give_back_native_blocks();
  for (const auto& device : devices()) {
    const Snapshot held = device->snapshot();
    if (held.cached + held.in_limbo == 0) continue;
    // Where nobody may wait (a capture), what earlier fences freed can still go.
    fence(*device);
    handed_back += device->policy().trim(0);
  }
  return handed_back > 0;
} catch (const std::bad_alloc&) {
  return false;
}

}  // namespace tidepool
