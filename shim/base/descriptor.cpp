// Writing without raising SIGPIPE or SIGXFSZ.
#include "shim/base/descriptor.hpp"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>

namespace tidepool {
namespace {

// Blocks both signals in this thread, and takes back one that the write raised.
class Quiet {
 public:
  Quiet() {
    sigemptyset(&signals_);
    sigaddset(&signals_, SIGPIPE);
    sigaddset(&signals_, SIGXFSZ);
    sigset_t pending;
    sigpending(&pending);
    was_pending_ = sigismember(&pending, SIGPIPE) == 1 || sigismember(&pending, SIGXFSZ) == 1;
    pthread_sigmask(SIG_BLOCK, &signals_, &before_);
  }
  ~Quiet() {
    const int kept = errno;
    constexpr timespec kNow{0, 0};
    // Both are raised in the thread that writes, so what is pending now is ours.
    if (!was_pending_)
      while (sigtimedwait(&signals_, nullptr, &kNow) > 0) {
      }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    errno = kept;
  }
  Quiet(const Quiet&) = delete;
  Quiet& operator=(const Quiet&) = delete;

 private:
  sigset_t signals_;
  sigset_t before_;
  bool was_pending_ = false;
};

}  // namespace

bool write_quietly(int descriptor, std::string_view text) {
  const Quiet quiet;
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

}  // namespace tidepool
