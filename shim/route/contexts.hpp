// The contexts of this process: each may have work in flight that touches a block, so a fence waits for
// all of them.
//
// Threading: any thread; the lock is never held over a driver call.
#pragma once

#include <mutex>
#include <optional>
#include <vector>

#include "shim/driver/cuda.hpp"

namespace tidepool {

class Contexts {
 public:
  struct Entry {
    CUcontext context;
    int device;
    bool primary;
  };

  void add(const Entry& entry);
  std::optional<Entry> take(CUcontext context);
  std::optional<Entry> take_primary(int device);
  std::vector<CUcontext> all() const;
  // Is there no other?
  bool only(CUcontext context) const;

 private:
  template <typename Matches>
  std::optional<Entry> take_first(const Matches& matches);

  mutable std::mutex lock_;
  std::vector<Entry> entries_;
};

// Waits until every given context, and the calling thread's current one, has finished all submitted
// work. The caller's current context is the same afterwards. The first error of the driver, or success.
CUresult synchronize(const std::vector<CUcontext>& contexts);

}  // namespace tidepool
