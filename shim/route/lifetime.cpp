// Contexts that come and go, and captures that end.
#include "shim/route/router.hpp"
#include "shim/route/traced.hpp"

namespace tidepool {

CUresult Router::context_created(const CUcontext* context, int device, bool primary, const Pass& pass) {
  const CUresult result = pass_with_memory(pass);
  if (result == CUDA_SUCCESS) contexts_.add({*context, device, primary});
  return result == CUDA_SUCCESS ? result : fail_to_start(device, pass, result);
}

Router::Belongings Router::belongings_of(CUcontext context) {
  Belongings found;
  const auto value = reinterpret_cast<std::uint64_t>(context);
  for (const auto& device : devices()) {
    if (!device->has_policy()) continue;
    device->policy().each_live([&](const Block& block) {
      const Owner owner = Owner::of(block.label);
      if (owner.kind == Kind::synchronous && owner.context == value)
        found.blocks.emplace_back(device.get(), block);
    });
  }
  found.records = ledger_.remove_context(value);
  return found;
}

// A context takes its cuMemAlloc blocks with it (cuda.h, cuCtxDestroy); stream-ordered ones live on. Its
// streams are gone too, and their handles may come back: what they had cached is fenced.
void Router::bury(CUcontext context, const Belongings& belongings) {
  gate_.end_all(context);
  streams_.clear();
  lanes_.forget();
  const trace::Moment moment;
  for (const auto& [address, record] : belongings.records) {
    forget(record);
    traced::freed(device_at(record.device), moment, address, record);
  }
  for (const auto& [device, block] : belongings.blocks)
    if (const Result<Block> freed = device->policy().free(block.address, kNoStream)) {
      forget(*device, freed.value().label);
      traced::freed(*device, moment, block.address, freed.value().label);
    }
  for (const auto& device : devices()) {
    device->events.forget(context);
    device->native_events.forget(context);
    device->native_blocks.forget(reinterpret_cast<std::uint64_t>(context));
    if (device->has_policy()) fence(*device);
  }
}

// All is taken out before the call: a fence of another thread must not enter a dead context, and the
// driver may give the handle's value to a new one as soon as it returns.
CUresult Router::context_destroyed(CUcontext context, const Pass& pass) {
  return end_context(contexts_.take(context), context, pass);
}

CUresult Router::primary_context_reset(int device, const Pass& pass) {
  const std::optional<Contexts::Entry> entry = contexts_.take_primary(device);
  return end_context(entry, entry ? entry->context : nullptr, pass);
}

CUresult Router::end_context(const std::optional<Contexts::Entry>& entry, CUcontext context,
                             const Pass& pass) {
  const auto paused = keeper_.pause();
  give_back_native_blocks(context);
  const Belongings belongings = belongings_of(context);
  // Whether a reset leaves memory of cuMemCreate as it is, cuda.h does not say.
  give_back_idle_handles();
  const CUresult result = pass();
  if (result == CUDA_SUCCESS) {
    bury(context, belongings);
    return result;
  }
  if (entry) contexts_.add(*entry);
  for (const auto& [address, record] : belongings.records) ledger_.add(address, record);
  return result;
}

// Ends the primary context only with its last holder, so the driver is asked.
CUresult Router::primary_context_released(int device, const Pass& pass) {
  const auto paused = keeper_.pause();
  give_back_idle_handles();
  give_back_native_blocks();
  const CUresult result = pass();
  unsigned flags = 0;
  int active = 1;
  if (result != CUDA_SUCCESS || driver.cuDevicePrimaryCtxGetState(device, &flags, &active) != CUDA_SUCCESS ||
      active != 0)
    return result;
  if (const std::optional<Contexts::Entry> entry = contexts_.take_primary(device))
    bury(entry->context, belongings_of(entry->context));
  return result;
}

CUresult Router::may_end_contexts(const Pass& pass) {
  const auto paused = keeper_.pause();
  give_back_native_blocks();
  return pass_on(pass);
}

CUresult Router::begin_capture(CUstream stream, bool per_thread_stream, const Pass& pass) {
  const CUstream named = named_stream(stream, per_thread_stream);
  CUcontext context = nullptr;
  // Unknown where the driver does not say: such a capture ends by its stream alone.
  if (driver.cuStreamGetCtx(named, &context) != CUDA_SUCCESS) context = nullptr;
  return gate_.begin(named, context, pass);
}

CUresult Router::end_capture(CUstream stream, bool per_thread_stream, const Pass& pass) {
  const CUresult result = pass();
  // After these two the capture is still open, on the thread or stream that began it.
  if (result != CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD && result != CUDA_ERROR_ILLEGAL_STATE)
    gate_.end(named_stream(stream, per_thread_stream));
  return result;
}

}  // namespace tidepool
