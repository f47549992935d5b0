// The driver's own blocks: given out again when the device has finished with them, and out of the shim's
// hands as soon as somebody else may have a claim on them.
//
// A free waits as the driver's does, for the block's own context and for no other: a kernel of another device
// may be waiting for what this very thread launches next (NCCL). Where there are several contexts, events say
// when those are done with the block too, and until then the driver is asked for another one.
#include "shim/route/router.hpp"
#include "shim/route/traced.hpp"

namespace tidepool {
namespace {

constexpr int kMostRounds = 2;  // a fence that was under way, and one of its own

}  // namespace

// What a block may be kept as: nothing where the shim only watches, or does not know whose it is.
int Router::form_of(int form, std::uint64_t context) const {
  return settings_.serves() && context != 0 ? form : Record::kOnce;
}

bool Router::take_native(Device& device, CUdeviceptr* out, const Record& record) {
  if (record.form == Record::kOnce || device.native_blocks.bytes() == 0) return false;
  const NativeBlocks::Kind kind{record.context, record.form, record.requested};
  NativeBlocks::Found found = device.native_blocks.take(kind);
  for (int round = 0; round < kMostRounds && found.pending; ++round) {
    if (advance_native_fence(device) != EventFence::Progress::done) break;
    found = device.native_blocks.take(kind);
  }
  if (!found.address) {
    give_back_surplus(device, record.requested);
    return false;
  }
  device.passed_again(record.requested);
  *out = found.address->value;
  traced::passed(device, *out, record, trace::Source::again);
  return true;
}

// Without waiting.
EventFence::Progress Router::advance_native_fence(Device& device) {
  const CaptureGate::Passage passage(gate_);
  if (passage.capturing()) return EventFence::Progress::impossible;
  NativeBlocks& blocks = device.native_blocks;
  const auto [progress, fence] =
      device.native_events.advance(contexts_in_use(), [&] { return blocks.open_fence(); });
  if (progress == EventFence::Progress::done) blocks.close_fence(fence);
  return progress;
}

// Done: with all that was submitted before this call.
EventFence::Progress Router::ask_for_idle_device(Device& device) {
  for (int round = 1;; ++round) {
    const EventFence::Progress progress = advance_native_fence(device);
    if (progress != EventFence::Progress::done || round == kMostRounds) return progress;
  }
}

// Before the driver is asked for more. It waits for the device in a free, and the caller did not ask for one:
// only if there is nothing to wait for.
void Router::give_back_surplus(Device& device, Bytes more) {
  if (!device.native_blocks.has_surplus(more)) return;
  if (ask_for_idle_device(device) != EventFence::Progress::done) return;
  const RelaxedCapture relaxed(gate_);
  while (device.native_blocks.has_surplus(more) && device.native_blocks.give_back_oldest() > 0) {
  }
}

CUresult Router::free_native(Address address, const Pass& pass) {
  // Without a context the driver refuses.
  if (!settings_.serves() || current_device() == nullptr) return pass_free(address, pass);
  const std::optional<Record> record = ledger_.keep(address);
  if (!record) return pass_free(address, pass);
  const std::optional<CUresult> refused = refused_in_capture();
  if (!refused && keep_native(address, *record)) return CUDA_SUCCESS;
  ledger_.unkeep(address);
  return refused ? *refused : pass_free(address, pass);
}

Router::WaitResult Router::wait_for_context(std::uint64_t context) {
  const CaptureGate::Passage passage(gate_);
  if (passage.capturing()) return {Waited::impossible};
  CUcontext current = nullptr;
  CUresult result = driver.cuCtxGetCurrent(&current);
  if (result != CUDA_SUCCESS) return {Waited::failed, result};
  const auto own = reinterpret_cast<CUcontext>(context);
  if (current != own) result = driver.cuCtxPushCurrent_v2(own);
  if (result != CUDA_SUCCESS) return {Waited::failed, result};
  result = driver.cuCtxSynchronize();
  if (current != own) driver.cuCtxPopCurrent_v2(&current);
  if (result == CUDA_SUCCESS) return {Waited::done};
  // A capture that began by a way we do not see.
  return {result == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED ? Waited::impossible : Waited::failed, result};
}

// False: the driver shall have it, and say what there is to say.
bool Router::keep_native(Address address, const Record& record) {
  const WaitResult waited =
      settings_.fast_free ? WaitResult{Waited::impossible} : wait_for_context(record.context);
  if (waited.waited == Waited::failed) return false;
  Device& device = device_at(record.device);
  const bool finished =
      waited.waited == Waited::done && contexts_.only(reinterpret_cast<CUcontext>(record.context));
  const trace::Moment moment;
  device.native_blocks.keep(address, {record.context, record.form, record.requested}, finished);
  device.kept(record.requested);
  traced::freed(device, moment, address, record);
  if (is_worth_keeping(device)) keeper_.watch();
  if (gate_.capturing() || !device.native_blocks.has_surplus()) return true;
  const RelaxedCapture relaxed(gate_);
  while (device.native_blocks.has_surplus() && device.native_blocks.give_back_oldest() > 0) {
  }
  return true;
}

Bytes Router::give_back_native_blocks() {
  Bytes given_back = 0;
  for (const auto& device : devices()) {
    if (device->native_blocks.bytes() == 0) continue;
    const RelaxedCapture relaxed(gate_);
    given_back += device->native_blocks.give_back_all();
  }
  return given_back;
}

void Router::give_back_native_blocks(CUcontext context) {
  for (const auto& device : devices()) {
    if (device->native_blocks.bytes() == 0) continue;
    const RelaxedCapture relaxed(gate_);
    device->native_blocks.give_back_all(reinterpret_cast<std::uint64_t>(context));
  }
}

// The block is known by its first byte, the claim may be made by any.
void Router::claim_block(CUdeviceptr inside) {
  CUdeviceptr base = 0;
  std::size_t size = 0;
  if (!devices().empty() && driver.cuMemGetAddressRange_v2(&base, &size, inside) == CUDA_SUCCESS)
    ledger_.share({base});
}

// Noted before the call: afterwards another thread may have freed the block.
CUresult Router::share_block(CUdeviceptr inside, const Pass& pass) {
  if (is_kept(inside)) return CUDA_ERROR_INVALID_VALUE;
  if (settings_.serves()) claim_block(inside);
  return pass_on(pass);
}

// Is it in a block that the application has freed and only the driver takes for live?
bool Router::is_kept(CUdeviceptr inside) {
  for (const auto& device : devices()) {
    if (!device->native_blocks.may_hold({inside})) continue;
    CUdeviceptr base = 0;
    std::size_t size = 0;
    if (driver.cuMemGetAddressRange_v2(&base, &size, inside) == CUDA_SUCCESS && ledger_.is_kept({base}))
      return true;
  }
  return false;
}

}  // namespace tidepool
