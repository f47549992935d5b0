// The application's streams that are known to live, so that a call on a dead or invented handle is refused
// as the driver refuses it, without asking the driver each time.
//
// Threading: any thread.
#pragma once

#include <mutex>
#include <shared_mutex>
#include <unordered_set>

#include "shim/driver/driver.hpp"

namespace tidepool {

class LiveStreams {
 public:
  // SUCCESS, or what the driver says of the handle.
  CUresult check(CUstream stream) {
    {
      const std::shared_lock hold(lock_);
      if (streams_.count(stream) != 0) return CUDA_SUCCESS;
    }
    CUcontext context = nullptr;
    const CUresult result = driver.cuStreamGetCtx(stream, &context);
    if (result != CUDA_SUCCESS) return result;
    const std::unique_lock hold(lock_);
    streams_.insert(stream);
    return CUDA_SUCCESS;
  }

  void remove(CUstream stream) {
    const std::unique_lock hold(lock_);
    streams_.erase(stream);
  }

  // A context took its streams with it; those of others are asked about once more.
  void clear() {
    const std::unique_lock hold(lock_);
    streams_.clear();
  }

 private:
  std::shared_mutex lock_;
  std::unordered_set<CUstream> streams_;
};

}  // namespace tidepool
