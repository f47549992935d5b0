// Ours or the driver's: every decision about a memory call lives here, one public function per kind of
// call. Each takes the application's arguments and a Pass that makes the very same call to the driver.
//
// Common to all: CUresult as the driver would give it; an out-parameter is written on success only;
// any thread; sizes in bytes. std::bad_alloc may leave: the wrapper then answers with what the driver
// said, if it was asked, or asks it.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "shim/ledger/ledger.hpp"
#include "shim/ledger/mappings.hpp"
#include "shim/report/announcer.hpp"
#include "shim/route/contexts.hpp"
#include "shim/route/device.hpp"
#include "shim/route/gate.hpp"
#include "shim/route/keeper.hpp"
#include "shim/route/lanes.hpp"
#include "shim/route/owner.hpp"
#include "shim/route/pass.hpp"
#include "shim/route/streams.hpp"

namespace tidepool {

class Router {
 public:
  // Who the caller is, and where its Python program stands; allocates nothing.
  using LookAtCaller = void (*)(report::Failure& failure, report::Name<2048>& python_stack);

  // Bytes free on a device over all processes, by the driver's management library; nothing: it does not say.
  using FreeOnMachine = std::optional<Bytes> (*)(const char* uuid);

  // `on_out_of_memory` is called, without a lock, when a request that the device could not serve has
  // been recorded; `announcer` is told of each refusal.
  // `jax_uses_pool`: the shim itself told JAX to allocate from the driver's pool.
  Router(const Settings& settings, bool jax_uses_pool, report::Announcer& announcer,
         LookAtCaller look_at_caller, FreeOnMachine free_on_machine, std::function<void()> on_out_of_memory);

  // cuMemAlloc family (allocation.cpp)
  CUresult allocate(CUdeviceptr* out, std::size_t bytes, const Pass& pass);
  CUresult allocate_pitch(CUdeviceptr* out, std::size_t* pitch, std::size_t width, std::size_t height,
                          unsigned element, const Pass& pass);
  CUresult free(CUdeviceptr pointer, const Pass& pass);

  // Stream-ordered family (stream_ordered.cpp). `pool` is null for the device's current pool.
  CUresult allocate_async(CUdeviceptr* out, std::size_t bytes, CUmemoryPool pool, const StreamName& stream,
                          const Pass& pass);
  CUresult free_async(CUdeviceptr pointer, const StreamName& stream, const Pass& pass);
  CUresult destroy_stream(CUstream stream, const Pass& pass);

  // Pools (pool.cpp)
  CUresult pool_created(const CUmemoryPool* pool, const CUmemPoolProps* properties, const Pass& pass);
  CUresult pool_destroyed(CUmemoryPool pool, const Pass& pass);
  CUresult pool_shared(CUmemoryPool pool, const CUmemAccessDesc* access, std::size_t count, const Pass& pass);
  CUresult pool_chosen(const Pass& pass);
  CUresult set_pool_attribute(CUmemoryPool pool, CUmemPool_attribute attribute, const Pass& pass);
  CUresult pool_attribute(CUmemoryPool pool, CUmemPool_attribute attribute, void* value, const Pass& pass);
  CUresult trim_pool(CUmemoryPool pool, std::size_t keep, const Pass& pass);

  // The application's own virtual memory (own_memory.cpp): passed on, charged, its handles used again.
  CUresult create(CUmemGenericAllocationHandle* handle, std::size_t size,
                  const CUmemAllocationProp* properties, unsigned long long flags, const Pass& pass);
  CUresult retain(CUmemGenericAllocationHandle* handle, void* address, const Pass& pass);
  CUresult release(CUmemGenericAllocationHandle handle, const Pass& pass);
  CUresult map(CUdeviceptr at, std::size_t size, CUmemGenericAllocationHandle handle, const Pass& pass);
  CUresult unmap(CUdeviceptr at, std::size_t size, const Pass& pass);
  // Calls that give others a claim on a handle's memory, or on what is mapped in a range.
  CUresult share_handle(CUmemGenericAllocationHandle handle, const Pass& pass);
  CUresult share_range(CUdeviceptr at, std::size_t size, const Pass& pass);
  // Any other call about a handle.
  CUresult about_handle(CUmemGenericAllocationHandle handle, const Pass& pass);
  // Any other call about mappings at an address. The arena's are nobody's but ours: to the application its
  // blocks are no mappings.
  CUresult about_mapping(CUdeviceptr at, std::size_t size, const Pass& pass);

  // Questions (query.cpp)
  CUresult memory_info(std::size_t* free, const Pass& pass);
  CUresult address_range(CUdeviceptr* base, std::size_t* size, CUdeviceptr pointer, const Pass& pass);
  CUresult pointer_attribute(void* data, CUpointer_attribute attribute, CUdeviceptr pointer,
                             const Pass& pass);
  CUresult pointer_attributes(unsigned count, CUpointer_attribute* attributes, void** data,
                              CUdeviceptr pointer, const Pass& pass);
  CUresult set_pointer_attribute(CUpointer_attribute attribute, CUdeviceptr pointer, const Pass& pass);
  CUresult export_ipc(CUdeviceptr pointer, const Pass& pass);

  // Calls that give others a claim on the driver's own block around a pointer (native.cpp).
  CUresult share_block(CUdeviceptr inside, const Pass& pass);

  // Contexts and captures (lifetime.cpp)
  CUresult context_created(const CUcontext* context, int device, bool primary, const Pass& pass);
  CUresult context_destroyed(CUcontext context, const Pass& pass);
  CUresult primary_context_released(int device, const Pass& pass);
  CUresult primary_context_reset(int device, const Pass& pass);
  // Calls after which blocks of any context may be gone.
  CUresult may_end_contexts(const Pass& pass);
  CUresult begin_capture(CUstream stream, bool per_thread_stream, const Pass& pass);
  CUresult end_capture(CUstream stream, bool per_thread_stream, const Pass& pass);

  // Any other entry: when the driver is out of memory, hands it what we cache and asks once more.
  CUresult pass_on(const Pass& pass);
  // The same for a call that the driver has answered so once already.
  CUresult retry_with_memory(const Pass& pass);

  // idle_memory.cpp: gives a piece of what is cached back, and never waits; for whoever wants it.
  struct GivenBack {
    enum class Outcome {
      some,
      not_yet,  // a capture is open, or the device has not finished with it
      nothing,  // that is worth a call
    };
    Outcome outcome;
    Bytes size = 0;
  };
  GivenBack give_back_piece(Device& device);
  // From here on nothing of ours calls the driver but the application's own calls.
  void end_keeping() noexcept { keeper_.stop(); }

  // The devices of the process; empty before the first allocation.
  const std::vector<std::unique_ptr<Device>>& devices() const;

 private:
  static constexpr int kMostFences = 3;
  enum class Waited { done, impossible, failed };
  struct WaitResult {
    Waited waited;
    CUresult error = CUDA_SUCCESS;
  };

  // allocation.cpp
  CUresult serve(Device& device, CUdeviceptr* out, Bytes bytes, const Lane& lane, const Owner& owner,
                 const Pass& pass);
  std::optional<CUresult> allocate_lazily(Device& device, CUdeviceptr* out, Bytes bytes,
                                          std::uint64_t context);  // lazy.cpp
  // …_once: CUDA_ERROR_OUT_OF_MEMORY is not told of and not waited for.
  CUresult serve_once(Device& device, CUdeviceptr* out, Bytes bytes, const Lane& lane, const Owner& owner,
                      const Pass& pass);
  CUresult pass_allocation(Device& device, CUdeviceptr* out, Bytes bytes, const Record& record,
                           const Pass& pass);
  CUresult pass_allocation_once(Device& device, CUdeviceptr* out, Bytes bytes, const Record& record,
                                const Pass& pass);
  CUresult pass_with_memory(const Pass& pass);  // router.cpp
  CUresult pass_free(Address address, const Pass& pass);
  CUresult answer_to_no_block();
  std::optional<CUresult> refused_in_capture();
  void enter(Address address, const Record& record);
  void forget(const Record& record);
  void forget(Device& device, const Label& label);

  // native.cpp
  int form_of(int form, std::uint64_t context) const;
  bool take_native(Device& device, CUdeviceptr* out, const Record& record);
  CUresult free_native(Address address, const Pass& pass);
  bool keep_native(Address address, const Record& record);
  EventFence::Progress advance_native_fence(Device& device);
  EventFence::Progress ask_for_idle_device(Device& device);
  WaitResult wait_for_context(std::uint64_t context);
  void give_back_surplus(Device& device, Bytes more);
  Bytes give_back_native_blocks();
  void give_back_native_blocks(CUcontext context);
  void claim_block(CUdeviceptr inside);
  bool is_kept(CUdeviceptr inside);

  // refusal.cpp
  report::Failure describe(Device* device, const char* entry, Bytes bytes);
  Bytes largest_block(int device);
  void announce(report::Failure& failure, bool final);
  Refusals::Patience patience_with(Device& device, Bytes bytes, bool hopeless);
  std::optional<Bytes> could_get(Device& device);
  CUresult wait_for_memory(Device& device, Bytes bytes, const Refusals::Patience& patience,
                           const Pass& again);
  // `again` makes the same attempt once more, and does not come here.
  CUresult refuse(Device& device, Bytes bytes, const Pass& again);
  void served_after_all(Device& device, Bytes bytes);
  CUresult fail(const Pass& pass, CUresult result);
  CUresult fail_to_start(int device, const Pass& pass, CUresult result);

  // own_memory.cpp
  void end_use(Mappings::Id id);
  bool was_released(CUmemGenericAllocationHandle handle) const;
  void share(Range range);
  Bytes give_back_idle_handles();
  bool touches_arena(CUdeviceptr at, std::size_t size);

  // lifetime.cpp: what a context takes with it; `records` have left the ledger.
  struct Belongings {
    std::vector<std::pair<Device*, Block>> blocks;
    std::vector<std::pair<Address, Record>> records;
  };
  Belongings belongings_of(CUcontext context);
  void bury(CUcontext context, const Belongings& belongings);
  CUresult end_context(const std::optional<Contexts::Entry>& entry, CUcontext context, const Pass& pass);

  // query.cpp: the live arena block that holds an address; what an allocation could get now, bytes.
  std::optional<Block> find(Address inside);
  Bytes could_get(Device& device, Bytes free_on_device);

  // fence.cpp
  WaitResult wait_for_devices();
  WaitResult fence(Device& device);
  std::vector<CUcontext> contexts_in_use() const;
  EventFence::Answer ask_events(Device& device);
  EventFence::Progress advance_fence(Device& device);
  Result<Block> find_memory(Device& device, Request request);
  bool hand_back_cache();

  // idle_memory.cpp
  static Bytes cached_beyond_share(Device& device, const Snapshot& held);
  static Bytes held_between_uses(Device& device);
  // Is so much held that it may be given back one day?
  static bool is_worth_keeping(Device& device);
  Keeper::Next look_after(Device& device);
  Keeper::Next look_after_devices() noexcept;

  // stream_ordered.cpp
  Lane* ready_lane(const StreamName& name);
  Lane* find_lane(const StreamName& name);
  CUresult allocate_async_anyhow(CUdeviceptr* out, std::size_t bytes, CUmemoryPool pool,
                                 const StreamName& stream, const Pass& pass);
  CUresult free_async_anyhow(CUdeviceptr pointer, const StreamName& stream, const Pass& pass);
  Pool* served_pool(Lane& lane, CUmemoryPool pool);
  std::optional<Address> open_reservation(Device& device, Bytes bytes, CUmemoryPool pool, StreamKey key);
  void back_reservations();
  CUresult serve_of_share(Device& device, CUdeviceptr* out, Bytes bytes, const Lane& lane, const Owner& owner,
                          const Pass& pass);
  bool close_reservation(Device& device, Address address);
  Device* device_of(CUstream stream);
  bool is_capturing(const StreamName& name);

  Pool* books_of(CUmemoryPool pool);  // pool.cpp

  Device* current_device();
  Device& device_at(int ordinal) { return *devices_[static_cast<std::size_t>(ordinal)]; }
  bool find_devices();
  bool take(Device& device, Bytes bytes);
  Device* owner_of(Address address);
  bool serves_synchronous();

  const Settings& settings_;
  report::Announcer& announcer_;
  const LookAtCaller look_at_caller_;
  const FreeOnMachine free_on_machine_;
  const std::function<void()> on_out_of_memory_;
  Ledger ledger_;
  Mappings mappings_;
  Contexts contexts_;
  CaptureGate gate_;
  LiveStreams streams_;
  Lanes lanes_;
  Pools pools_;
  Keeper keeper_;

  std::mutex devices_lock_;
  std::vector<std::unique_ptr<Device>> devices_;  // constant once devices_ready_
  std::atomic<bool> devices_ready_{false};

  // XLA's first request is a reservation only where it was us who chose its allocator.
  const bool jax_uses_pool_;
  std::atomic<bool> reservation_may_come_;
};

}  // namespace tidepool
