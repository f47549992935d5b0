// Knows whether this thread is already inside the shim: a driver that calls an exported name of ours
// while it serves us means itself, not the application.
#pragma once

namespace tidepool {

class Reentry {
 public:
  Reentry() : outermost_(depth_ == 0) { ++depth_; }
  ~Reentry() { --depth_; }
  Reentry(const Reentry&) = delete;
  Reentry& operator=(const Reentry&) = delete;

  bool outermost() const { return outermost_; }

 private:
  // initial-exec: global-dynamic TLS may call malloc at a thread's first access.
  static inline thread_local int depth_ __attribute__((tls_model("initial-exec"))) = 0;
  const bool outermost_;
};

}  // namespace tidepool
