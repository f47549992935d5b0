// The contexts of this process, and waiting for them.
#include "shim/route/contexts.hpp"

#include <algorithm>

#include "shim/driver/driver.hpp"

namespace tidepool {

void Contexts::add(const Entry& added) {
  const std::lock_guard hold(lock_);
  const auto same = [&](const Entry& entry) { return entry.context == added.context; };
  if (std::none_of(entries_.begin(), entries_.end(), same)) entries_.push_back(added);
}

template <typename Matches>
std::optional<Contexts::Entry> Contexts::take_first(const Matches& matches) {
  const std::lock_guard hold(lock_);
  const auto found = std::find_if(entries_.begin(), entries_.end(), matches);
  if (found == entries_.end()) return std::nullopt;
  const Entry taken = *found;
  entries_.erase(found);
  return taken;
}

std::optional<Contexts::Entry> Contexts::take(CUcontext context) {
  return take_first([&](const Entry& entry) { return entry.context == context; });
}

std::optional<Contexts::Entry> Contexts::take_primary(int device) {
  return take_first([&](const Entry& entry) { return entry.primary && entry.device == device; });
}

std::vector<CUcontext> Contexts::all() const {
  const std::lock_guard hold(lock_);
  std::vector<CUcontext> contexts;
  for (const Entry& entry : entries_) contexts.push_back(entry.context);
  return contexts;
}

bool Contexts::only(CUcontext context) const {
  const std::lock_guard hold(lock_);
  return std::all_of(entries_.begin(), entries_.end(),
                     [&](const Entry& entry) { return entry.context == context; });
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
    const bool died = result == CUDA_ERROR_CONTEXT_IS_DESTROYED || result == CUDA_ERROR_INVALID_CONTEXT;
    if (first == CUDA_SUCCESS && !died) first = result;
  }
  return first;
}

}  // namespace tidepool
