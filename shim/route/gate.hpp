// Keeps our calls apart from stream captures. A synchronise while a capture is open fails and
// invalidates the capture (cuda.h, cuCtxSynchronize), so a capture begins only when none of our calls
// is under way, and none that waits starts while a capture is open.
//
// Threading: any thread.
#pragma once

#include <unistd.h>

#include <atomic>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <utility>

#include "shim/driver/driver.hpp"

namespace tidepool {

// The per-thread stream by its one name, whichever flavour of an entry it came through.
inline CUstream named_stream(CUstream stream, bool per_thread_stream) {
  return stream == nullptr && per_thread_stream ? CU_STREAM_PER_THREAD : stream;
}

class CaptureGate {
 public:
  bool capturing() const { return count_.load(std::memory_order_acquire) > 0; }

  // No capture begins while this is held.
  class Passage {
   public:
    explicit Passage(CaptureGate& gate) : hold_(gate.lock_), capturing_(gate.capturing()) {}
    bool capturing() const { return capturing_; }

   private:
    std::shared_lock<std::shared_mutex> hold_;
    bool capturing_;
  };

  // `begin_capture` calls the driver. The stream is a named one, of `context`.
  template <typename Begin>
  CUresult begin(CUstream stream, CUcontext context, const Begin& begin_capture) {
    const std::unique_lock hold(lock_);
    // First what may throw: once the driver has begun, it must be on the list.
    const auto [entry, added] = open_.emplace(key_of(stream), context);
    const CUresult result = begin_capture();
    if (result == CUDA_SUCCESS && added)
      count_.fetch_add(1);
    else if (added)
      open_.erase(entry);
    return result;
  }

  // EndCapture was called, or the stream was destroyed: either ends a capture that began there.
  void end(CUstream stream) {
    if (!capturing()) return;
    const std::unique_lock hold(lock_);
    if (open_.erase(key_of(stream)) > 0) count_.fetch_sub(1);
  }

  // A context takes its streams, and their captures, with it.
  void end_all(CUcontext context) {
    if (!capturing()) return;
    const std::unique_lock hold(lock_);
    count_.fetch_sub(static_cast<int>(
        std::erase_if(open_, [&](const auto& capture) { return capture.second == context; })));
  }

 private:
  using Key = std::pair<CUstream, pid_t>;
  static Key key_of(CUstream stream) { return {stream, stream == CU_STREAM_PER_THREAD ? gettid() : 0}; }

  std::shared_mutex lock_;
  std::map<Key, CUcontext> open_;
  std::atomic<int> count_{0};
};

// For calls of ours that take or give back memory, which any thread may make at any time: no capture
// begins meanwhile, and to one that is open they do not count (cuStreamBeginCapture: in the other modes
// a thread's own allocation calls invalidate it).
class RelaxedCapture {
 public:
  explicit RelaxedCapture(CaptureGate& gate) : passage_(gate) { exchange(); }
  ~RelaxedCapture() { exchange(); }
  RelaxedCapture(const RelaxedCapture&) = delete;
  RelaxedCapture& operator=(const RelaxedCapture&) = delete;

 private:
  void exchange() {
    if (passage_.capturing()) driver.cuThreadExchangeStreamCaptureMode(&mode_);
  }
  const CaptureGate::Passage passage_;
  CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;
};

}  // namespace tidepool
