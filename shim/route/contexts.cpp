// The contexts of this process by device, and waiting for them.
#include "shim/route/contexts.hpp"

#include <algorithm>

#include "shim/driver/driver.hpp"

namespace tidepool {

void Contexts::add(CUcontext context, int device, bool primary) {
  const std::lock_guard hold(lock_);
  const auto same = [&](const Entry& entry) { return entry.context == context; };
  if (std::none_of(entries_.begin(), entries_.end(), same)) entries_.push_back({context, device, primary});
}

void Contexts::remove(CUcontext context) {
  const std::lock_guard hold(lock_);
  std::erase_if(entries_, [&](const Entry& entry) { return entry.context == context; });
}

std::optional<CUcontext> Contexts::primary_of(int device) const {
  const std::lock_guard hold(lock_);
  for (const Entry& entry : entries_)
    if (entry.primary && entry.device == device) return entry.context;
  return std::nullopt;
}

std::vector<CUcontext> Contexts::on(int device) const {
  const std::lock_guard hold(lock_);
  std::vector<CUcontext> contexts;
  for (const Entry& entry : entries_)
    if (entry.device == device) contexts.push_back(entry.context);
  return contexts;
}

CUresult synchronize(const std::vector<CUcontext>& contexts) {
  CUcontext current = nullptr;
  if (const CUresult result = driver.cuCtxGetCurrent(&current); result != CUDA_SUCCESS) return result;
  CUresult first = current == nullptr ? CUDA_SUCCESS : driver.cuCtxSynchronize();
  for (CUcontext context : contexts) {
    if (context == current) continue;
    // A context that another thread destroyed meanwhile has no work left.
    if (driver.cuCtxPushCurrent_v2(context) != CUDA_SUCCESS) continue;
    const CUresult result = driver.cuCtxSynchronize();
    CUcontext popped = nullptr;
    driver.cuCtxPopCurrent_v2(&popped);
    if (first == CUDA_SUCCESS) first = result;
  }
  return first;
}

}  // namespace tidepool
