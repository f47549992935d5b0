// Waiting for the device: before memory is reused that earlier work may still touch, and before cache
// is handed back. No lock is held over the wait: a host callback of the application may need one.
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
  const Fence opened = device.with_policy([](Policy& policy) { return policy.open_fence(); });
  const WaitResult result = wait_for_devices();
  if (result.waited == Waited::done)
    device.with_policy([&](Policy& policy) { policy.close_fence(opened); });
  return result;
}

// For a driver that has run out: everything that is cached, on every device. False: there was nothing.
bool Router::hand_back_cache() {
  Bytes handed_back = 0;
  for (const auto& device : devices()) {
    const Snapshot held = device->snapshot();
    if (held.cached + held.in_limbo == 0) continue;
    // Where nobody may wait (a capture), what earlier fences freed can still go.
    fence(*device);
    handed_back += device->with_policy([](Policy& policy) { return policy.trim(0); });
  }
  return handed_back > 0;
}

}  // namespace tidepool
