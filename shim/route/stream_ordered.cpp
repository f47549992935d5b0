// The stream-ordered family: cuMemAllocAsync and cuMemFreeAsync, and the streams that carry them. Their pools
// are pool.cpp.
#include <algorithm>

#include "shim/base/log.hpp"
#include "shim/route/router.hpp"
#include "shim/route/traced.hpp"

namespace tidepool {

// The device is the stream's, whatever context is current.
Device* Router::device_of(CUstream stream) {
  Device* current = current_device();
  if (current == nullptr || devices_.size() == 1) return current;
  CUcontext context = nullptr;
  if (driver.cuStreamGetCtx(stream, &context) != CUDA_SUCCESS ||
      driver.cuCtxPushCurrent_v2(context) != CUDA_SUCCESS)
    return nullptr;
  Device* device = current_device();
  driver.cuCtxPopCurrent_v2(&context);
  return device;
}

// Null: the stream is none, or the driver has something to say first.
//
// The legacy stream is one per context. The per-thread stream is one per thread and context, and dies unseen
// with its thread: it gets no key, its memory is fenced.
Lane* Router::find_lane(const StreamName& name) {
  Lane& lane = lanes_.find_or_begin(name);
  if (name.is_handle()) {
    if (lane.device != nullptr) return &lane;
    if (streams_.check(name.stream) != CUDA_SUCCESS) return nullptr;
    lane.device = device_of(name.stream);
    lane.key = {reinterpret_cast<std::uint64_t>(name.stream)};
    return lane.device == nullptr ? nullptr : &lane;
  }
  CUcontext context = nullptr;
  if (driver.cuCtxGetCurrent(&context) != CUDA_SUCCESS || context == nullptr) return nullptr;
  if (lane.context == context && lane.device != nullptr) return &lane;
  lane.context = context;
  lane.pool_known = false;
  lane.place = nullptr;
  lane.device = current_device();
  lane.key = name.is_threads_own() ? kNoStream : StreamKey{reinterpret_cast<std::uint64_t>(context) | 1};
  return lane.device == nullptr ? nullptr : &lane;
}

Pool* Router::served_pool(Lane& lane, CUmemoryPool pool) {
  if (lane.pool_known && lane.asked_pool == pool) return lane.pool;
  Pool* found = lane.device->has_arena() ? pools_.find(pool, lane.device->ordinal) : nullptr;
  lane.asked_pool = pool;
  lane.pool = found != nullptr && found->served ? found : nullptr;
  lane.pool_known = true;
  if (lane.pool != nullptr && lane.place == nullptr) lane.place = lane.device->policy().place_of(lane.key);
  return lane.pool;
}

// Streams join a capture by waiting on an event, so while one is open each is asked.
bool Router::is_capturing(const StreamName& name) {
  if (!gate_.capturing()) return false;
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  return driver.cuStreamIsCapturing(named_stream(name.stream, name.per_thread), &status) != CUDA_SUCCESS ||
         status != CU_STREAM_CAPTURE_STATUS_NONE;
}

std::optional<Address> Router::open_reservation(Device& device, Bytes bytes, CUmemoryPool pool,
                                                StreamKey key) {
  if (!reservation_may_come_.load(std::memory_order_relaxed) || !reservation_may_come_.exchange(false))
    return std::nullopt;
  cuuint64_t threshold = 0;
  if (pool == nullptr ||
      driver.cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold) != CUDA_SUCCESS ||
      threshold != bytes)
    return std::nullopt;
  // A share that is taken at the first allocation is taken at this one, for the stream's next requests.
  const Result<Block> first = device.policy().allocate({.size = kMiB, .stream = key});
  if (first) static_cast<void>(device.policy().free(first.value().address, key));
  // A pool of our own making that is larger was asked for by TIDEPOOL_FRACTION.
  device.pool_share.set(std::max(Bytes{bytes}, device.preallocated()));
  return device.reservation.open(bytes);
}

bool Router::close_reservation(Device& device, Address address) {
  if (!device.reservation.may_be_at(address)) return false;
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

// A lane that is right as it stands, which nearly all are. Null: it has to be looked for, or the call is to
// be recorded.
inline Lane* Router::ready_lane(const StreamName& name) {
  Lane* lane = gate_.capturing() || trace::on() ? nullptr : lanes_.find(name);
  if (lane == nullptr || name.is_handle()) return lane;
  CUcontext context = nullptr;
  return driver.cuCtxGetCurrent(&context) == CUDA_SUCCESS && context == lane->context ? lane : nullptr;
}

CUresult Router::allocate_async(CUdeviceptr* out, std::size_t bytes, CUmemoryPool pool,
                                const StreamName& stream, const Pass& pass) {
  Lane* lane = out == nullptr || jax_uses_pool_ ? nullptr : ready_lane(stream);
  if (lane != nullptr && lane->serves(pool) && lane->pool->by_default) {
    const Owner owner{.kind = Kind::stream_ordered, .pool = lane->pool};
    const Result<Block> block = lane->device->policy().allocate({.size = bytes,
                                                                 .stream = lane->key,
                                                                 .owner = owner.packed(),
                                                                 .tag = owner.tag(),
                                                                 .grouped = true,
                                                                 .place = lane->place});
    if (block) {
      lane->device->account.served(bytes);
      *out = block.value().address.value;
      return CUDA_SUCCESS;
    }
  }
  return allocate_async_anyhow(out, bytes, pool, stream, pass);
}

CUresult Router::allocate_async_anyhow(CUdeviceptr* out, std::size_t bytes, CUmemoryPool pool,
                                       const StreamName& stream, const Pass& pass) {
  if (out == nullptr || bytes == 0 || is_capturing(stream)) return pass_on(pass);
  Lane* lane = find_lane(stream);
  if (lane == nullptr) return pass_on(pass);
  Device& device = *lane->device;
  Pool* served = served_pool(*lane, pool);
  if (served == nullptr) {
    const Record record{.device = device.ordinal,
                        .requested = bytes,
                        .kind = Kind::stream_ordered,
                        .stream = reinterpret_cast<std::uint64_t>(stream.stream)};
    return pass_allocation(device, out, bytes, record, pass);
  }
  if (jax_uses_pool_) {
    back_reservations();
    if (const std::optional<Address> reserved = open_reservation(device, bytes, pool, lane->key)) {
      *out = reserved->value;
      return CUDA_SUCCESS;
    }
  }
  Owner owner{.kind = Kind::stream_ordered, .pool = served};
  if (!device.pool_share.limited()) return serve(device, out, bytes, *lane, owner, pass);
  owner.of_share = true;
  const auto attempt = [&] { return serve_of_share(device, out, bytes, *lane, owner, pass); };
  const CUresult result = attempt();
  return result == CUDA_ERROR_OUT_OF_MEMORY ? refuse(device, bytes, Pass(pass.entry(), attempt)) : result;
}

CUresult Router::serve_of_share(Device& device, CUdeviceptr* out, Bytes bytes, const Lane& lane,
                                const Owner& owner, const Pass& pass) {
  if (!device.pool_share.take(bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
  // Also when serving runs out of host memory.
  struct Taken {
    PoolShare& share;
    Bytes size;
    ~Taken() { share.give_back(size); }
  } taken{device.pool_share, bytes};
  const CUresult result = serve_once(device, out, bytes, lane, owner, pass);
  if (result == CUDA_SUCCESS) taken.size = 0;
  return result;
}

CUresult Router::free_async(CUdeviceptr pointer, const StreamName& stream, const Pass& pass) {
  const Lane* lane = ready_lane(stream);
  if (lane != nullptr && lane->place != nullptr && lane->device->maybe_ours({pointer})) {
    const Result<Block> freed = lane->device->policy().free({pointer}, lane->key, lane->place);
    if (freed) {
      forget(*lane->device, freed.value().label);
      return CUDA_SUCCESS;
    }
  }
  return free_async_anyhow(pointer, stream, pass);
}

CUresult Router::free_async_anyhow(CUdeviceptr pointer, const StreamName& stream, const Pass& pass) {
  const Address address{pointer};
  Device* device = owner_of(address);
  if (device == nullptr || is_capturing(stream)) return pass_free(address, pass);
  const Lane* lane = find_lane(stream);
  // A dead stream, a host callback, no context: the driver has something to say first. It is asked, whatever
  // is known of the stream.
  CUcontext context = nullptr;
  if (lane == nullptr)
    if (const CUresult refused =
            driver.cuStreamGetCtx(named_stream(stream.stream, stream.per_thread), &context);
        refused != CUDA_SUCCESS)
      return refused;
  if (close_reservation(*device, address)) return CUDA_SUCCESS;
  const trace::Moment moment;
  const Result<Block> freed = device->policy().free(address, lane == nullptr ? kNoStream : lane->key);
  if (!freed) return CUDA_ERROR_INVALID_VALUE;
  traced::freed(*device, moment, address, freed.value().label, stream);
  forget(*device, freed.value().label);
  return CUDA_SUCCESS;
}

// cuStreamDestroy returns with work pending, and the handle's value may come back at once
// (rapidsai/rmm#649): what the stream had cached waits for a fence from before the call.
CUresult Router::destroy_stream(CUstream stream, const Pass& pass) {
  lanes_.forget();
  if (StreamName{stream}.is_handle())
    for (const auto& device : devices())
      if (device->has_policy()) device->policy().forget_stream({reinterpret_cast<std::uint64_t>(stream)});
  streams_.remove(stream);
  const CUresult result = pass();
  lanes_.forget();
  if (result == CUDA_SUCCESS) gate_.end(stream);
  return result;
}

}  // namespace tidepool
