// The cuMemAlloc family, and what both families share: serving a block from the arena, passing an
// allocation on with its books kept, refusing one.
#include "shim/base/log.hpp"
#include "shim/route/router.hpp"
#include "shim/route/traced.hpp"

namespace tidepool {
namespace {

std::uint64_t current_context() {
  CUcontext context = nullptr;
  return driver.cuCtxGetCurrent(&context) == CUDA_SUCCESS ? reinterpret_cast<std::uint64_t>(context) : 0;
}

bool is_short(const Result<Block>& block) {
  return !block &&
         (block.failure().reason == Reason::out_of_memory || block.failure().reason == Reason::limit);
}

}  // namespace

// With `auto`, the driver's own blocks: whether a program will export one (cuIpcGetMemHandle) or make one
// wait for copies (SYNC_MEMOPS), which mapped pages cannot, it does not say before it has it. Where a pool
// was asked for, it is that pool, unless more than the program can tell the difference.
bool Router::serves_synchronous() {
  if (settings_.backing != BackingChoice::automatic) return settings_.backing == BackingChoice::vmm;
  return settings_.mode == Mode::prealloc && devices_.size() == 1 && !rdma_module_loaded();
}

CUresult Router::allocate(CUdeviceptr* out, std::size_t bytes, const Pass& pass) {
  Device* device = out == nullptr || bytes == 0 ? nullptr : current_device();
  if (device == nullptr) return pass_on(pass);
  back_reservations();
  const std::uint64_t context = current_context();
  if (const std::optional<CUresult> lazily = allocate_lazily(*device, out, bytes, context)) return *lazily;
  if (serves_synchronous() && device->has_arena()) {
    if (const std::optional<CUresult> refused = refused_in_capture()) return *refused;
    return serve(*device, out, bytes, Lane{}, {.kind = Kind::synchronous, .context = context}, pass);
  }
  const Record record{.device = device->ordinal,
                      .form = form_of(Record::kPlain, context),
                      .requested = bytes,
                      .context = context};
  if (record.form != Record::kOnce)
    if (const std::optional<CUresult> refused = refused_in_capture()) return *refused;
  if (take_native(*device, out, record)) return CUDA_SUCCESS;
  return pass_allocation(*device, out, bytes, record, pass);
}

// The driver knows the pitch that its texture units like, so the blocks are its own.
CUresult Router::allocate_pitch(CUdeviceptr* out, std::size_t* pitch, std::size_t width, std::size_t height,
                                unsigned element, const Pass& pass) {
  Device* device =
      out == nullptr || pitch == nullptr || width == 0 || height == 0 ? nullptr : current_device();
  if (device == nullptr || height > kUnlimited / width) return pass_on(pass);
  NativeBlocks& blocks = device->native_blocks;
  const std::uint64_t context = current_context();
  Record record{.device = device->ordinal,
                .form = form_of(blocks.form_of({width, height, element}), context),
                .requested = width * height,
                .context = context};
  if (record.form != Record::kOnce) {
    if (const std::optional<CUresult> refused = refused_in_capture()) return *refused;
    const Bytes known = blocks.pitch_of(record.form);
    if (take_native(*device, out, record)) return *pitch = known, CUDA_SUCCESS;
  }
  const CUresult result = pass_allocation(*device, out, record.requested, record, pass);
  if (result != CUDA_SUCCESS || record.form != Record::kOnce) return result;
  record.form = form_of(blocks.learn_form({width, height, element, *pitch}), context);
  ledger_.add({*out}, record);
  return result;
}

CUresult Router::serve(Device& device, CUdeviceptr* out, Bytes bytes, const Lane& lane, const Owner& owner,
                       const Pass& pass) {
  const auto attempt = [&] { return serve_once(device, out, bytes, lane, owner, pass); };
  const CUresult result = attempt();
  return result == CUDA_ERROR_OUT_OF_MEMORY ? refuse(device, bytes, Pass(pass.entry(), attempt)) : result;
}

CUresult Router::serve_once(Device& device, CUdeviceptr* out, Bytes bytes, const Lane& lane,
                            const Owner& owner, const Pass& pass) {
  const Request request{.size = bytes,
                        .stream = lane.key,
                        .owner = owner.packed(),
                        .tag = owner.tag(),
                        .grouped = owner.pool != nullptr && owner.pool->by_default,
                        .place = lane.place};
  Result<Block> block = device.policy().allocate(request);
  if (!block && block.failure().reason == Reason::needs_fence) block = find_memory(device, request);
  // What the application has freed of the driver's own gives way.
  if (is_short(block) && give_back_native_blocks() > 0) block = find_memory(device, request);
  if (block) {
    device.account.served(bytes);
    if (owner.pool != nullptr && !owner.pool->by_default) owner.pool->used.add(bytes);
    *out = block.value().address.value;
    traced::served(device, *out, bytes, owner, lane.name);
    if (announcer_.open()) [[unlikely]]
      served_after_all(device, bytes);
    return CUDA_SUCCESS;
  }
  if (is_short(block)) return CUDA_ERROR_OUT_OF_MEMORY;
  // Our own fault, or a driver that cannot map: its plain allocation is the way out.
  if (!device.warned_of_arena.exchange(true))
    log::warn("device " + std::to_string(device.ordinal) + ": the arena cannot serve " +
              std::to_string(bytes) + " bytes (driver error " + std::to_string(block.failure().code) +
              "); such requests are passed on to the driver");
  return pass_allocation_once(
      device, out, bytes,
      {.device = device.ordinal, .requested = bytes, .kind = owner.kind, .context = owner.context}, pass);
}

// A record that is still there is of a block that ended by a way we do not see.
void Router::enter(Address address, const Record& record) {
  const std::optional<Record> stale = ledger_.add(address, record);
  if (!stale) return;
  if (stale->kept)
    device_at(stale->device).native_blocks.forget(address);
  else
    forget(*stale);
}

// Of the limit; what the arena only caches gives way.
bool Router::take(Device& device, Bytes bytes) {
  return device.account.take(bytes) || (hand_back_cache() && device.account.take(bytes));
}

CUresult Router::pass_allocation(Device& device, CUdeviceptr* out, Bytes bytes, const Record& record,
                                 const Pass& pass) {
  const auto attempt = [&] { return pass_allocation_once(device, out, bytes, record, pass); };
  const CUresult result = attempt();
  return result == CUDA_ERROR_OUT_OF_MEMORY ? refuse(device, bytes, Pass(pass.entry(), attempt)) : result;
}

CUresult Router::pass_allocation_once(Device& device, CUdeviceptr* out, Bytes bytes, const Record& record,
                                      const Pass& pass) {
  if (!take(device, bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
  const CUresult result = pass_with_memory(pass);
  if (result != CUDA_SUCCESS) {
    device.account.give_back(bytes);
    return result;
  }
  if (announcer_.open()) served_after_all(device, bytes);
  enter({*out}, record);
  device.passed(bytes);
  traced::passed(device, *out, record);
  return result;
}

// The books of a block of the arena that is gone.
void Router::forget(Device& device, const Label& label) {
  const Owner owner = Owner::of(label);
  device.account.taken_back();
  if (owner.pool != nullptr && !owner.pool->by_default) owner.pool->used.subtract(label.requested);
  if (owner.of_share) device.pool_share.give_back(label.requested);
}

// The books of a block of the driver's that is gone.
void Router::forget(const Record& record) {
  Device& device = device_at(record.device);
  if (record.lazy)
    device.passed_lazily_back(record.requested);
  else
    device.passed_back(record.requested);
}

// The record goes first: once the driver has returned, another thread may be given the address.
CUresult Router::pass_free(Address address, const Pass& pass) {
  const std::optional<Record> record = ledger_.remove(address);
  if (!record && is_kept(address.value)) return answer_to_no_block();
  const trace::Moment moment;
  const CUresult result = pass();
  if (!record) return result;
  if (result == CUDA_SUCCESS) {
    forget(*record);
    traced::freed(device_at(record->device), moment, address, *record);
  } else {
    ledger_.add(address, *record);
  }
  return result;
}

// What the driver says to a call that it refuses whatever it is about: a host callback's, one without a
// context, one after a sticky error. Asked about an address that no allocation has, since those of the arena
// are mappings to it.
CUresult Router::answer_to_no_block() {
  const CUresult answer = driver.cuMemFree_v2(1);
  return answer == CUDA_SUCCESS ? CUDA_ERROR_INVALID_VALUE : answer;
}

// cuMemAlloc and cuMemFree are unsafe during a capture of this thread's, or another's global one, and end it
// (cuda.h, cuThreadExchangeStreamCaptureMode): a program that makes them is told so by the driver itself.
std::optional<CUresult> Router::refused_in_capture() {
  if (!gate_.capturing()) return std::nullopt;
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  if (driver.cuThreadExchangeStreamCaptureMode(&mode) != CUDA_SUCCESS) return std::nullopt;
  const bool allowed = mode == CU_STREAM_CAPTURE_MODE_RELAXED;
  driver.cuThreadExchangeStreamCaptureMode(&mode);
  const CUresult answer = allowed ? CUDA_ERROR_INVALID_VALUE : answer_to_no_block();
  return answer == CUDA_ERROR_INVALID_VALUE ? std::nullopt : std::optional(answer);
}

CUresult Router::free(CUdeviceptr pointer, const Pass& pass) {
  const Address address{pointer};
  Device* device = owner_of(address);
  if (device == nullptr) return free_native(address, pass);
  if (const std::optional<CUresult> refused = refused_in_capture()) return *refused;
  if (current_device() == nullptr)
    if (const CUresult refused = answer_to_no_block(); refused != CUDA_ERROR_INVALID_VALUE) return refused;
  if (close_reservation(*device, address)) return CUDA_SUCCESS;
  const std::optional<Block> block = device->policy().find(address);
  if (!block || block->address != address) return answer_to_no_block();
  // Programs use a free as a barrier (rapidsai/rmm#1655), so it waits as the driver's may. First: a free
  // that the driver would refuse (in a host callback, after a sticky error) must leave the block alone.
  const bool waits = !settings_.fast_free && Owner::of(block->label).kind == Kind::synchronous;
  const WaitResult result = waits ? fence(*device) : WaitResult{Waited::impossible};
  if (result.waited == Waited::failed) return result.error;
  const trace::Moment moment;
  const Result<Block> freed = result.waited == Waited::done ? device->policy().free_idle(address)
                                                            : device->policy().free(address, kNoStream);
  if (!freed) return CUDA_ERROR_INVALID_VALUE;
  forget(*device, freed.value().label);
  traced::freed(*device, moment, address, freed.value().label);
  return CUDA_SUCCESS;
}

}  // namespace tidepool
