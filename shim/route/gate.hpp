// Keeps our waiting apart from stream captures. A synchronise while a capture is open fails and
// invalidates the capture (cuda.h, cuCtxSynchronize), so a capture begins only when none of our calls
// is under way, and none of them starts while a capture is open.
//
// Threading: any thread.
#pragma once

#include <atomic>
#include <mutex>
#include <set>
#include <shared_mutex>

#include "shim/driver/driver.hpp"

namespace tidepool {

class CaptureGate {
 public:
  bool open() const { return count_.load(std::memory_order_acquire) > 0; }

  // Held by us over a call that a capture would not bear. False: a capture is open, do not call.
  class Passage {
   public:
    explicit Passage(CaptureGate& gate) : hold_(gate.lock_), free_(!gate.open()) {}
    explicit operator bool() const { return free_; }

   private:
    std::shared_lock<std::shared_mutex> hold_;
    bool free_;
  };

  // `begin` calls the driver's BeginCapture.
  template <typename Begin>
  CUresult begin(CUstream stream, const Begin& begin_capture) {
    const std::unique_lock hold(lock_);
    const CUresult result = begin_capture();
    if (result == CUDA_SUCCESS && capturing_.insert(stream).second) count_.fetch_add(1);
    return result;
  }

  // EndCapture was called, or the stream was destroyed: either ends a capture that began there.
  void end(CUstream stream) {
    const std::unique_lock hold(lock_);
    if (capturing_.erase(stream) > 0) count_.fetch_sub(1);
  }

 private:
  std::shared_mutex lock_;
  std::set<CUstream> capturing_;
  std::atomic<int> count_{0};
};

// While a capture is open anywhere, calls of ours that could count against it are made in relaxed mode:
// in the others, a thread's own allocation calls would invalidate it (cuStreamBeginCapture).
class RelaxedCapture {
 public:
  explicit RelaxedCapture(const CaptureGate& gate) : needed_(gate.open()) { exchange(); }
  ~RelaxedCapture() { exchange(); }
  RelaxedCapture(const RelaxedCapture&) = delete;
  RelaxedCapture& operator=(const RelaxedCapture&) = delete;

 private:
  void exchange() {
    if (needed_) driver.cuThreadExchangeStreamCaptureMode(&mode_);
  }
  const bool needed_;
  CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;
};

}  // namespace tidepool
