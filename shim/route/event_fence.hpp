// A fence that nobody waits for: one event in each context, recorded now, asked about later.
//
// cuCtxRecordEvent captures all that was submitted to a context, whatever its streams (CUDA 12.5 and
// later). An older driver has no such call; there a fence can only be waited for (Router::fence).
//
// Threading: any thread; one lock, held over driver calls that do not wait.
#pragma once

#include <mutex>
#include <optional>
#include <vector>

#include "policies/policy.hpp"
#include "shim/driver/driver.hpp"

namespace tidepool {

class EventFence {
 public:
  enum class Progress {
    done,        // the device has finished: the caller may close the fence that is given back
    pending,     // it has not yet
    impossible,  // the driver has no such events, or refused
  };
  struct Answer {
    Progress progress;
    Fence fence;
  };

  // Asks about the fence that is under way; where none is, opens one by `open` and records it in all
  // `contexts`. Requires: no capture is open, and none begins meanwhile.
  template <typename Open>
  Answer advance(const std::vector<CUcontext>& contexts, const Open& open) {
    const std::lock_guard hold(lock_);
    if (!under_way_) {
      const Fence opened = open();
      if (!record(contexts)) return {Progress::impossible, {}};
      under_way_ = opened;
    }
    const Answer answer{query(), *under_way_};
    if (answer.progress != Progress::pending) under_way_.reset();
    return answer;
  }

  // The context has ended, and its event with it.
  void forget(CUcontext context);

 private:
  struct Mark {
    CUcontext context;
    CUevent event;
    bool recorded;
  };
  bool record(const std::vector<CUcontext>& contexts);
  Mark* mark_of(CUcontext context);
  Progress query();

  std::mutex lock_;
  std::vector<Mark> marks_;
  std::optional<Fence> under_way_;
};

}  // namespace tidepool
