// The driver's state and its look-ups; see state.hpp.
#include "state.hpp"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <iterator>

#include "array.hpp"
#include "call.hpp"
#include "detector.hpp"
#include "pool.hpp"
#include "sharing.hpp"

namespace sim {
namespace {

// A destroyed context stays current to threads that had it, and its handle may come back for
// another one: the id tells them apart.
struct Current {
  CUcontext handle;
  std::uint64_t id;
};

// Plain data, so that a thread's end runs nothing of ours: a library with thread-local
// destructors cannot be unloaded, which would hide stale pointers from tests.
struct Stack {
  Current items[64];
  int depth;
};
thread_local Stack stack;
thread_local int own_thread_id;

}  // namespace

std::mutex& driver_mutex() {
  constinit static std::mutex mutex;
  return mutex;
}

State& state() {
  static State* const instance = new State;
  return *instance;
}

int thread_id() {
  if (!own_thread_id) own_thread_id = static_cast<int>(syscall(SYS_gettid));
  return own_thread_id;
}

bool valid_device(CUdevice device) {
  return device >= 0 && static_cast<std::size_t>(device) < state().devices.size();
}

Context* State::find_context(CUcontext handle) {
  for (std::size_t i = 0; i < primary.size(); ++i)
    if (reinterpret_cast<CUcontext>(primary[i].get()) == handle)
      return primary_active[i] ? primary[i].get() : nullptr;
  return contexts.find(handle);
}

Block* State::find_block(std::uint64_t address) {
  auto at = blocks.upper_bound(address);
  if (at == blocks.begin()) return nullptr;
  --at;
  return address - at->second.base < at->second.size ? &at->second : nullptr;
}

Block& State::add_block(Block block) {
  block.id = next_id++;
  return blocks.insert_or_assign(block.base, block).first->second;
}

CUcontext current_handle() { return stack.depth ? stack.items[stack.depth - 1].handle : nullptr; }

CUresult push_current(CUcontext handle) {
  const Context* context = state().find_context(handle);
  if (!context || stack.depth == static_cast<int>(std::size(stack.items))) return CUDA_ERROR_INVALID_CONTEXT;
  stack.items[stack.depth++] = {handle, context->id};
  return CUDA_SUCCESS;
}

CUresult pop_current(CUcontext* handle) {
  if (!stack.depth) return CUDA_ERROR_INVALID_CONTEXT;
  --stack.depth;
  if (handle) *handle = stack.items[stack.depth].handle;
  return CUDA_SUCCESS;
}

void replace_current(CUcontext handle) {
  if (stack.depth) --stack.depth;
  if (handle) push_current(handle);
}

CUresult current_context(Context** context, bool even_broken) {
  if (!stack.depth) return CUDA_ERROR_INVALID_CONTEXT;
  const Current& top = stack.items[stack.depth - 1];
  Context* found = state().find_context(top.handle);
  if (!found || found->id != top.id) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  *context = found;
  return even_broken ? CUDA_SUCCESS : found->error;
}

Stream::~Stream() {
  if (lane) timeline().close(*lane);
}

void open_lane(Stream& stream, bool legacy) {
  stream.lane = timeline().open({.id = stream.id,
                                 .context = stream.context,
                                 .blocking = !(stream.flags & CU_STREAM_NON_BLOCKING),
                                 .legacy = legacy});
  Marks& waits = stream.context->waits;
  std::erase_if(waits, [](const auto& mark) { return mark->done; });
  if (!waits.empty()) timeline().queue(stream.lane, Work{}, waits);
}

CUresult drain(Lock& lock, Context& context) {
  timeline().wait(lock, context);
  return context.error;
}

CUresult find_stream(CUstream handle, Stream** stream) {
  if (handle == nullptr) handle = PerThreadScope::active() ? CU_STREAM_PER_THREAD : CU_STREAM_LEGACY;
  if (handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD) {
    Context* context = nullptr;
    SIM_TRY(current_context(&context));
    auto& own = handle == CU_STREAM_LEGACY ? context->legacy : context->thread_default[thread_id()];
    if (!own) {
      own = std::make_unique<Stream>();
      own->context = context;
      own->id = state().next_id++;
      open_lane(*own, handle == CU_STREAM_LEGACY);
    }
    *stream = own.get();
    return CUDA_SUCCESS;
  }
  *stream = state().streams.find(handle);
  return *stream ? (*stream)->context->error : CUDA_ERROR_INVALID_HANDLE;
}

unsigned devices_with_access(const Block& block) {
  if (block.kind == Block::Kind::mapped) return block.readers | block.writers;
  if (block.kind == Block::Kind::host || block.kind == Block::Kind::registered) return 0;
  unsigned devices = 1u << block.device;
  if (block.kind == Block::Kind::stream_ordered)
    for (const auto& [device, flags] : block.pool->access)
      if (flags) devices |= 1u << device;
  return devices;
}

void check_free(const char* how, const Block& block) {
  if (timeline().pending()) check_release(how, block.base, block.size, devices_with_access(block));
}

void free_block(Blocks::iterator at) {
  const Block block = at->second;
  state().blocks.erase(at);
  free_memory(block);
}

void free_memory(const Block& block) {
  switch (block.kind) {
    case Block::Kind::device:
      if (block.low) {
        unmap_host(block.base, block.size);
        state().devices[static_cast<std::size_t>(block.device)]->discharge(Device::footprint(block.size));
        break;
      }
      state().devices[static_cast<std::size_t>(block.device)]->release(block.base, block.size);
      break;
    case Block::Kind::stream_ordered:
      block.pool->release(block.base, block.size, nullptr);
      end_pool_if_over(block.pool);
      break;
    case Block::Kind::managed:
    case Block::Kind::host: unmap_host(block.base, block.size); break;
    case Block::Kind::imported: unmap_place(block.base, block.size); break;
    case Block::Kind::registered:
    case Block::Kind::mapped: break;
  }
}

void* map_host(std::size_t bytes) {
  void* base =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return base == MAP_FAILED ? nullptr : base;
}

void unmap_host(std::uint64_t base, std::size_t bytes) { ::munmap(reinterpret_cast<void*>(base), bytes); }

void destroy_contents(Context* context) {
  State& all = state();
  for (auto at = all.blocks.begin(); at != all.blocks.end();) {
    const auto next = std::next(at);
    if (at->second.context == context) {
      check_free("the end of a context with memory", at->second);
      free_block(at);
    }
    at = next;
  }
  destroy_arrays(context);
  std::erase_if(all.functions, [context](const auto& entry) { return entry.second->context == context; });
  all.modules.remove_if([context](const Module& module) { return module.context == context; });
  all.events.remove_if([context](const Event& event) { return event.context == context; });
  // Before the streams, by which they are known.
  std::erase_if(all.captures, [context](const auto& capture) { return capture->origin->context == context; });
  all.streams.remove_if([context](const Stream& stream) { return stream.context == context; });
  context->legacy.reset();
  context->thread_default.clear();
  context->limits.clear();
  if (context->markers) timeline().close(*context->markers);
  context->markers.reset();
  context->waits.clear();
  context->error = CUDA_SUCCESS;
}

}  // namespace sim
