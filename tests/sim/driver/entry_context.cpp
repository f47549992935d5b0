// Contexts: primary and created ones, and the calling thread's stack of them.
#include <algorithm>

#include "capture.hpp"
#include "entries.hpp"
#include "pool.hpp"
#include "rules.hpp"
#include "state.hpp"

namespace sim {
namespace {

CUresult create_context(CUcontext* handle, unsigned flags, CUdevice device) {
  if (!handle) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock;
  if (!valid_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  auto context = std::make_unique<Context>();
  context->device = device;
  context->flags = flags;
  context->id = state().next_id++;
  const CUcontext created = state().contexts.add(std::move(context));
  SIM_TRY(push_current(created));
  *handle = created;
  return CUDA_SUCCESS;
}

// A context's work is done before the context goes, or ends with it (guess: cuda.h does not say).
void finish_work(Lock& lock, Context& context) {
  if (!rules().destroy_waits) timeline().abandon(context);
  timeline().wait(lock, context);
}

CUresult destroy_context(CUcontext handle) {
  Lock lock;
  Context* context = state().contexts.find(handle);
  if (!context) return CUDA_ERROR_INVALID_CONTEXT;
  finish_work(lock, *context);
  if (state().contexts.find(handle) != context) return CUDA_ERROR_INVALID_CONTEXT;  // by another thread
  Context* current = nullptr;
  if (current_context(&current, true) == CUDA_SUCCESS && current == context) pop_current(nullptr);
  destroy_contents(context);
  state().contexts.remove(handle);
  return CUDA_SUCCESS;
}

void end_primary(Lock& lock, std::size_t device) {
  finish_work(lock, *state().primary[device]);
  destroy_contents(state().primary[device].get());
  state().primary_active[device] = false;
}

CUresult release_primary(CUdevice device) {
  Lock lock;
  if (!valid_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  unsigned& references = state().primary_references[static_cast<std::size_t>(device)];
  if (!references) return CUDA_ERROR_INVALID_CONTEXT;
  if (!--references) end_primary(lock, static_cast<std::size_t>(device));
  return CUDA_SUCCESS;
}

CUresult reset_primary(CUdevice device) {
  Lock lock;
  if (!valid_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  end_primary(lock, static_cast<std::size_t>(device));
  return CUDA_SUCCESS;
}

CUresult set_primary_flags(CUdevice device, unsigned flags) {
  const Lock lock;
  if (!valid_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  state().primary_flags[static_cast<std::size_t>(device)] = flags;
  return CUDA_SUCCESS;
}

CUresult synchronize(Lock& lock, Context& context) {
  SIM_TRY(refuse_in_capture_of(&context));
  SIM_TRY(drain(lock, context));
  settle_pools(context);
  trim_pools(context.device);
  return CUDA_SUCCESS;
}

// cuda.h's defaults, as a real driver reports them (guess for those without a source).
std::size_t default_limit(CUlimit limit) {
  switch (limit) {
    case CU_LIMIT_STACK_SIZE: return 1024;
    case CU_LIMIT_PRINTF_FIFO_SIZE: return 1 << 20;
    case CU_LIMIT_MALLOC_HEAP_SIZE: return 8 << 20;
    default: return 0;
  }
}

}  // namespace

CUresult SIM_ENTRY(cuCtxCreate)(CUcontext* pctx, unsigned int flags, CUdevice dev) {
  return create_context(pctx, flags, dev);
}
CUresult SIM_ENTRY(cuCtxCreate_v2)(CUcontext* pctx, unsigned int flags, CUdevice dev) {
  return create_context(pctx, flags, dev);
}
CUresult SIM_ENTRY(cuCtxCreate_v3)(CUcontext* pctx, CUexecAffinityParam*, int, unsigned int flags,
                                   CUdevice dev) {
  return create_context(pctx, flags, dev);
}
CUresult SIM_ENTRY(cuCtxCreate_v4)(CUcontext* pctx, CUctxCreateParams*, unsigned int flags, CUdevice dev) {
  return create_context(pctx, flags, dev);
}
CUresult SIM_ENTRY(cuCtxDestroy)(CUcontext ctx) { return destroy_context(ctx); }
CUresult SIM_ENTRY(cuCtxDestroy_v2)(CUcontext ctx) { return destroy_context(ctx); }

CUresult SIM_ENTRY(cuCtxPushCurrent_v2)(CUcontext ctx) {
  const Lock lock;
  return push_current(ctx);
}
CUresult SIM_ENTRY(cuCtxPushCurrent)(CUcontext ctx) { return entry::cuCtxPushCurrent_v2(ctx); }

CUresult SIM_ENTRY(cuCtxPopCurrent_v2)(CUcontext* pctx) {
  const Lock lock;
  return pop_current(pctx);
}
CUresult SIM_ENTRY(cuCtxPopCurrent)(CUcontext* pctx) { return entry::cuCtxPopCurrent_v2(pctx); }

CUresult SIM_ENTRY(cuCtxSetCurrent)(CUcontext ctx) {
  const Lock lock;
  if (ctx && !state().find_context(ctx)) return CUDA_ERROR_INVALID_CONTEXT;
  replace_current(ctx);
  return CUDA_SUCCESS;
}

CUresult SIM_ENTRY(cuCtxGetCurrent)(CUcontext* pctx) {
  if (!pctx) return CUDA_ERROR_INVALID_VALUE;
  *pctx = current_handle();
  return CUDA_SUCCESS;
}

CUresult SIM_ENTRY(cuCtxGetDevice)(CUdevice* device) {
  if (!device) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock;
  Context* context = nullptr;
  SIM_TRY(current_context(&context, true));
  *device = context->device;
  return CUDA_SUCCESS;
}

CUresult SIM_ENTRY(cuCtxGetDevice_v2)(CUdevice* device, CUcontext ctx) {
  if (!ctx) return entry::cuCtxGetDevice(device);
  if (!device) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock;
  const Context* context = state().find_context(ctx);
  if (!context) return CUDA_ERROR_INVALID_CONTEXT;
  *device = context->device;
  return CUDA_SUCCESS;
}

CUresult SIM_ENTRY(cuCtxGetId)(CUcontext ctx, unsigned long long* ctxId) {
  if (!ctxId) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock;
  Context* context = ctx ? state().find_context(ctx) : nullptr;
  if (!ctx) SIM_TRY(current_context(&context, true));
  if (!context) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  *ctxId = context->id;
  return CUDA_SUCCESS;
}

CUresult SIM_ENTRY(cuCtxGetApiVersion)(CUcontext ctx, unsigned int* version) {
  if (!version) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock;
  Context* context = ctx ? state().find_context(ctx) : nullptr;
  if (!ctx) SIM_TRY(current_context(&context, true));
  if (!context) return CUDA_ERROR_INVALID_CONTEXT;
  *version = 3020;
  return CUDA_SUCCESS;
}

CUresult SIM_ENTRY(cuCtxGetFlags)(unsigned int* flags) {
  if (!flags) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock;
  Context* context = nullptr;
  SIM_TRY(current_context(&context, true));
  *flags =
      context->primary ? state().primary_flags[static_cast<std::size_t>(context->device)] : context->flags;
  return CUDA_SUCCESS;
}

CUresult SIM_ENTRY(cuCtxGetLimit)(size_t* pvalue, CUlimit limit) {
  if (!pvalue) return CUDA_ERROR_INVALID_VALUE;
  if (limit < 0 || limit >= CU_LIMIT_MAX) return CUDA_ERROR_UNSUPPORTED_LIMIT;
  const Lock lock;
  Context* context = nullptr;
  SIM_TRY(current_context(&context));
  const auto at = context->limits.find(limit);
  *pvalue = at == context->limits.end() ? default_limit(limit) : at->second;
  return CUDA_SUCCESS;
}

CUresult SIM_ENTRY(cuCtxSetLimit)(CUlimit limit, size_t value) {
  if (limit < 0 || limit >= CU_LIMIT_MAX) return CUDA_ERROR_UNSUPPORTED_LIMIT;
  const Lock lock;
  Context* context = nullptr;
  SIM_TRY(current_context(&context));
  context->limits[limit] = value;
  return CUDA_SUCCESS;
}

CUresult SIM_ENTRY(cuCtxGetStreamPriorityRange)(int* leastPriority, int* greatestPriority) {
  const Lock lock;
  Context* context = nullptr;
  SIM_TRY(current_context(&context));
  if (leastPriority) *leastPriority = 0;
  if (greatestPriority) *greatestPriority = -5;
  return CUDA_SUCCESS;
}

CUresult SIM_ENTRY(cuCtxSynchronize)() {
  Lock lock;
  Context* context = nullptr;
  SIM_TRY(current_context(&context));
  return synchronize(lock, *context);
}

CUresult SIM_ENTRY(cuCtxSynchronize_v2)(CUcontext ctx) {
  if (!ctx) return entry::cuCtxSynchronize();
  Lock lock;
  Context* context = state().find_context(ctx);
  return context ? synchronize(lock, *context) : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult SIM_ENTRY(cuCtxEnablePeerAccess)(CUcontext peerContext, unsigned int Flags) {
  if (Flags) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock;
  Context* context = nullptr;
  SIM_TRY(current_context(&context));
  const Context* peer = state().find_context(peerContext);
  if (!peer) return CUDA_ERROR_INVALID_CONTEXT;
  if (peer->device == context->device) return CUDA_ERROR_INVALID_DEVICE;
  return context->peers.insert(peer->id).second ? CUDA_SUCCESS : CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
}

CUresult SIM_ENTRY(cuCtxDisablePeerAccess)(CUcontext peerContext) {
  const Lock lock;
  Context* context = nullptr;
  SIM_TRY(current_context(&context));
  const Context* peer = state().find_context(peerContext);
  if (!peer) return CUDA_ERROR_INVALID_CONTEXT;
  return context->peers.erase(peer->id) ? CUDA_SUCCESS : CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
}

CUresult SIM_ENTRY(cuDevicePrimaryCtxRetain)(CUcontext* pctx, CUdevice dev) {
  if (!pctx) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock;
  if (!valid_device(dev)) return CUDA_ERROR_INVALID_DEVICE;
  const auto device = static_cast<std::size_t>(dev);
  if (!state().primary_active[device]) {
    state().primary_active[device] = true;
    state().primary[device]->id = state().next_id++;
  }
  ++state().primary_references[device];
  *pctx = reinterpret_cast<CUcontext>(state().primary[device].get());
  return CUDA_SUCCESS;
}

CUresult SIM_ENTRY(cuDevicePrimaryCtxRelease)(CUdevice dev) { return release_primary(dev); }
CUresult SIM_ENTRY(cuDevicePrimaryCtxRelease_v2)(CUdevice dev) { return release_primary(dev); }
CUresult SIM_ENTRY(cuDevicePrimaryCtxReset)(CUdevice dev) { return reset_primary(dev); }
CUresult SIM_ENTRY(cuDevicePrimaryCtxReset_v2)(CUdevice dev) { return reset_primary(dev); }
CUresult SIM_ENTRY(cuDevicePrimaryCtxSetFlags)(CUdevice dev, unsigned int flags) {
  return set_primary_flags(dev, flags);
}
CUresult SIM_ENTRY(cuDevicePrimaryCtxSetFlags_v2)(CUdevice dev, unsigned int flags) {
  return set_primary_flags(dev, flags);
}

CUresult SIM_ENTRY(cuDevicePrimaryCtxGetState)(CUdevice dev, unsigned int* flags, int* active) {
  if (!flags || !active) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock;
  if (!valid_device(dev)) return CUDA_ERROR_INVALID_DEVICE;
  *flags = state().primary_flags[static_cast<std::size_t>(dev)];
  *active = state().primary_active[static_cast<std::size_t>(dev)];
  return CUDA_SUCCESS;
}

}  // namespace sim
