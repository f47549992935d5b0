// The router's devices, and what it does with calls that it only watches.
#include "shim/route/router.hpp"

#include "shim/base/log.hpp"
#include "shim/trace/recorder.hpp"

namespace tidepool {

Router::Router(const Settings& settings, bool jax_uses_pool, report::Announcer& announcer,
               LookAtCaller look_at_caller, FreeOnMachine free_on_machine,
               std::function<void()> on_out_of_memory)
    : settings_(settings),
      announcer_(announcer),
      look_at_caller_(look_at_caller),
      free_on_machine_(free_on_machine),
      on_out_of_memory_(std::move(on_out_of_memory)),
      keeper_([this] { return look_after_devices(); }),
      jax_uses_pool_(jax_uses_pool),
      reservation_may_come_(jax_uses_pool) {}

// False before cuInit; tried again then.
bool Router::find_devices() {
  if (devices_ready_.load(std::memory_order_acquire)) return true;
  const std::lock_guard hold(devices_lock_);
  if (devices_ready_.load(std::memory_order_relaxed)) return true;
  int count = 0;
  if (driver.cuDeviceGetCount(&count) != CUDA_SUCCESS) return false;
  std::vector<std::unique_ptr<Device>> found;
  for (int ordinal = 0; ordinal < count; ++ordinal)
    found.push_back(std::make_unique<Device>(ordinal, settings_, gate_, ledger_, keeper_));
  for (const auto& device : found)
    trace::add_device(device->ordinal, device->uuid, device->name, device->total);
  devices_ = std::move(found);
  devices_ready_.store(true, std::memory_order_release);
  return true;
}

const std::vector<std::unique_ptr<Device>>& Router::devices() const {
  static const std::vector<std::unique_ptr<Device>> none;
  return devices_ready_.load(std::memory_order_acquire) ? devices_ : none;
}

// Asked per call: libraries switch contexts by private ways. Null without a current context; the
// driver then says so itself.
Device* Router::current_device() {
  CUdevice ordinal = -1;
  if (driver.cuCtxGetDevice(&ordinal) != CUDA_SUCCESS || !find_devices()) return nullptr;
  const auto index = static_cast<std::size_t>(ordinal);
  return ordinal >= 0 && index < devices_.size() ? devices_[index].get() : nullptr;
}

// Null for every pointer that no arena can own.
Device* Router::owner_of(Address address) {
  for (const auto& device : devices())
    if (device->maybe_ours(address)) return device.get();
  return nullptr;
}

CUresult Router::pass_with_memory(const Pass& pass) {
  back_reservations();
  const CUresult result = pass();
  return result == CUDA_ERROR_OUT_OF_MEMORY && hand_back_cache() ? pass() : result;
}

CUresult Router::pass_on(const Pass& pass) {
  const CUresult result = pass_with_memory(pass);
  return result == CUDA_ERROR_OUT_OF_MEMORY ? fail(pass, result) : result;
}

CUresult Router::retry_with_memory(const Pass& pass) {
  const CUresult result = hand_back_cache() ? pass() : CUDA_ERROR_OUT_OF_MEMORY;
  return result == CUDA_ERROR_OUT_OF_MEMORY ? fail(pass, result) : result;
}

}  // namespace tidepool
