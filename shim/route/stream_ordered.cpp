// The stream-ordered family: cuMemAllocAsync, its pools, and the streams that carry it.
#include <unistd.h>

#include <algorithm>

#include "shim/base/log.hpp"
#include "shim/route/router.hpp"

namespace tidepool {
namespace {

// A stream for as long as it lives. The legacy stream is one per context. The per-thread stream is one
// per thread and context, and dies unseen with its thread: it gets no key, its memory is fenced.
StreamKey key_of(CUstream stream, bool per_thread_stream) {
  const bool is_default = stream == nullptr;
  if (stream == CU_STREAM_PER_THREAD || (is_default && per_thread_stream)) return kNoStream;
  if (!is_default && stream != CU_STREAM_LEGACY) return {reinterpret_cast<std::uint64_t>(stream)};
  CUcontext context = nullptr;
  if (driver.cuCtxGetCurrent(&context) != CUDA_SUCCESS || context == nullptr) return kNoStream;
  return {reinterpret_cast<std::uint64_t>(context) | 1};
}

bool is_handle(CUstream stream) {
  return stream != nullptr && stream != CU_STREAM_LEGACY && stream != CU_STREAM_PER_THREAD;
}

}  // namespace

// The device is the stream's, whatever context is current.
Device* Router::device_of(CUstream stream) {
  Device* current = current_device();
  if (current == nullptr || devices_.size() == 1 || !is_handle(stream)) return current;
  CUcontext context = nullptr;
  if (driver.cuStreamGetCtx(stream, &context) != CUDA_SUCCESS ||
      driver.cuCtxPushCurrent_v2(context) != CUDA_SUCCESS)
    return nullptr;
  Device* device = current_device();
  driver.cuCtxPopCurrent_v2(&context);
  return device;
}

// Streams join a capture by waiting on an event, so while one is open each is asked.
bool Router::is_capturing(CUstream stream, bool per_thread_stream) {
  if (!gate_.capturing()) return false;
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  return driver.cuStreamIsCapturing(named_stream(stream, per_thread_stream), &status) != CUDA_SUCCESS ||
         status != CU_STREAM_CAPTURE_STATUS_NONE;
}

std::optional<CUmemoryPool> Router::served_pool(CUmemoryPool pool, const Device& device) {
  CUmemoryPool named = pool;
  // cuMemAllocAsync means the device's current pool, which the application may have changed.
  if (named == nullptr && driver.cuDeviceGetMemPool(&named, device.ordinal) != CUDA_SUCCESS)
    return std::nullopt;
  {
    const std::lock_guard hold(pools_lock_);
    if (const auto known = pools_.find(named); known != pools_.end())
      return known->second == device.ordinal ? std::optional(named) : std::nullopt;
  }
  CUmemoryPool by_default = nullptr;
  return driver.cuDeviceGetDefaultMemPool(&by_default, device.ordinal) == CUDA_SUCCESS && named == by_default
             ? std::optional(named)
             : std::nullopt;
}

// The device whose arena stands for this pool, if one does.
Device* Router::server_of(CUmemoryPool pool) {
  for (const auto& device : devices())
    if (device->has_policy() && served_pool(pool, *device)) return device.get();
  return nullptr;
}

std::optional<Address> Router::open_reservation(Device& device, Bytes bytes, CUmemoryPool pool,
                                                CUstream stream) {
  if (!reservation_may_come_.exchange(false)) return std::nullopt;
  cuuint64_t threshold = 0;
  if (pool == nullptr ||
      driver.cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold) != CUDA_SUCCESS ||
      threshold != bytes)
    return std::nullopt;
  // A share that is taken at the first allocation is taken at this one, for the stream's next requests.
  const Result<Block> first = device.with_policy(
      [&](Policy& policy) { return policy.allocate({.size = kMiB, .stream = key_of(stream, false)}); });
  if (first) device.free_block(first.value().address, key_of(stream, false));
  // A pool of our own making that is larger was asked for by TIDEPOOL_FRACTION.
  device.pool_share.set(std::max(Bytes{bytes}, device.preallocated()));
  return device.with_policy([&](Policy&) { return device.reservation.open(bytes); });
}

bool Router::close_reservation(Device& device, Address address) {
  const Reservation::Closed closed = device.reservation.close(address);
  if (closed == Reservation::Closed::backed && wait_for_devices().waited == Waited::done)
    device.reservation.release();
  return closed != Reservation::Closed::not_this;
}

void Router::back_reservations() {
  for (const auto& device : devices()) {
    if (!device->reservation.must_be_backed()) continue;
    if (!device->reservation.back())
      log::error("device " + std::to_string(device->ordinal) +
                 ": no memory for what JAX reserved; set TIDEPOOL_FRAMEWORKS=keep");
  }
}

CUresult Router::allocate_async(CUdeviceptr* out, std::size_t bytes, CUmemoryPool pool, CUstream stream,
                                bool per_thread_stream, const Pass& pass) {
  if (out == nullptr || bytes == 0 || is_capturing(stream, per_thread_stream)) return pass_on(pass);
  if (is_handle(stream) && streams_.check(stream) != CUDA_SUCCESS) return pass_on(pass);
  Device* device = device_of(stream);
  if (device == nullptr) return pass_on(pass);
  Record record{.device = device->ordinal, .requested = bytes, .kind = Kind::stream_ordered};
  const std::optional<CUmemoryPool> served = device->has_arena() ? served_pool(pool, *device) : std::nullopt;
  if (!served) return pass_allocation(*device, out, bytes, record, pass);
  record.pool = reinterpret_cast<std::uint64_t>(*served);
  back_reservations();
  if (const std::optional<Address> reserved = open_reservation(*device, bytes, pool, stream)) {
    *out = reserved->value;
    return CUDA_SUCCESS;
  }
  record.of_share = device->pool_share.limited();
  if (!record.of_share) return serve(*device, out, bytes, key_of(stream, per_thread_stream), record, pass);
  if (!device->pool_share.take(bytes)) return refuse_beyond_share(*device, bytes, pass);
  // Also when serve() runs out of host memory.
  struct Taken {
    PoolShare& share;
    Bytes size;
    ~Taken() { share.give_back(size); }
  } taken{device->pool_share, bytes};
  const CUresult result = serve(*device, out, bytes, key_of(stream, per_thread_stream), record, pass);
  if (result == CUDA_SUCCESS) taken.size = 0;
  return result;
}

CUresult Router::refuse_beyond_share(Device& device, Bytes bytes, const Pass& pass) {
  if (!device.warned_of_share.exchange(true))
    log::warn("device " + std::to_string(device.ordinal) + ": JAX's share of " +
              std::to_string(device.pool_share.size() >> 20) +
              " MiB is used up, as its own pool's would be; "
              "XLA_PYTHON_CLIENT_MEM_FRACTION sets another");
  return refuse(device, bytes, pass);
}

CUresult Router::free_async(CUdeviceptr pointer, CUstream stream, bool per_thread_stream, const Pass& pass) {
  const Address address{pointer};
  Device* device = owner_of(address);
  if (device == nullptr || is_capturing(stream, per_thread_stream)) return pass_free(address, pass);
  // On a dead stream whose handle has come back the block would be the new stream's at once.
  if (is_handle(stream))
    if (const CUresult refused = streams_.check(stream); refused != CUDA_SUCCESS) return refused;
  if (close_reservation(*device, address)) return CUDA_SUCCESS;
  const std::optional<Record> record = ledger_.remove(address);
  if (!record) return CUDA_ERROR_INVALID_VALUE;
  forget(*record);
  device->free_block(address, key_of(stream, per_thread_stream));
  return CUDA_SUCCESS;
}

// cuStreamDestroy returns with work pending, and the handle's value may come back at once
// (rapidsai/rmm#649): what the stream had cached waits for a fence from before the call.
CUresult Router::destroy_stream(CUstream stream, const Pass& pass) {
  if (is_handle(stream))
    for (const auto& device : devices())
      if (device->has_policy())
        device->with_policy(
            [&](Policy& policy) { policy.forget_stream({reinterpret_cast<std::uint64_t>(stream)}); });
  streams_.remove(stream);
  const CUresult result = pass();
  if (result == CUDA_SUCCESS) gate_.end(stream);
  return result;
}

// Memory of a pool that other processes, the host or a cap may have a claim on stays the driver's.
CUresult Router::pool_created(const CUmemoryPool* pool, const CUmemPoolProps* properties, const Pass& pass) {
  const CUresult result = pass_on(pass);
  if (result != CUDA_SUCCESS) return result;
  const bool plain = properties->location.type == CU_MEM_LOCATION_TYPE_DEVICE &&
                     properties->allocType == CU_MEM_ALLOCATION_TYPE_PINNED &&
                     properties->handleTypes == CU_MEM_HANDLE_TYPE_NONE && properties->maxSize == 0 &&
                     properties->usage == 0;
  const std::lock_guard hold(pools_lock_);
  pools_[*pool] = plain ? properties->location.id : kNotServed;
  return result;
}

CUresult Router::pool_destroyed(CUmemoryPool pool, const Pass& pass) {
  const CUresult result = pass();
  const std::lock_guard hold(pools_lock_);
  if (result == CUDA_SUCCESS) pools_.erase(pool);
  return result;
}

// Another device may now touch the pool's memory. The arena's pages are its own device's alone, so from
// here on the driver serves this pool.
CUresult Router::pool_shared(CUmemoryPool pool, const CUmemAccessDesc* access, std::size_t count,
                             const Pass& pass) {
  const CUresult result = pass();
  if (result != CUDA_SUCCESS || count == 0 || access == nullptr || !find_devices() || devices_.size() == 1)
    return result;
  const std::lock_guard hold(pools_lock_);
  pools_[pool] = kNotServed;
  return result;
}

// The driver's pool is empty where the arena serves it, so what it counts is added to.
CUresult Router::pool_attribute(CUmemoryPool pool, CUmemPool_attribute attribute, void* value,
                                const Pass& pass) {
  const CUresult result = pass();
  Device* device = result == CUDA_SUCCESS ? server_of(pool) : nullptr;
  if (device == nullptr) return result;
  const Snapshot held = device->snapshot();
  auto& count = *static_cast<cuuint64_t*>(value);
  switch (attribute) {
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT: count += held.live; break;
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH: count += device->account.live.peak(); break;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT: count += held.reserved; break;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH: count += held.reserved_peak; break;
    default: break;
  }
  return result;
}

CUresult Router::trim_pool(CUmemoryPool pool, std::size_t keep, const Pass& pass) {
  const CUresult result = pass();
  Device* device = result == CUDA_SUCCESS ? server_of(pool) : nullptr;
  if (device == nullptr) return result;
  if (fence(*device).waited == Waited::done)
    device->with_policy([&](Policy& policy) { return policy.trim(keep); });
  return result;
}

}  // namespace tidepool
