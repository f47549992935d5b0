// Making a trace's file, and making it longer.
#include "shim/trace/file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace tidepool::trace {
namespace {

constexpr int kPopulateWrite = 23;  // MADV_POPULATE_WRITE, which older headers lack

// musl has no fcntl64, which this is where files may be large.
int control(int descriptor, int command, long argument) {
  return static_cast<int>(::syscall(SYS_fcntl, descriptor, command, argument));
}

// Not as a standard stream that the program has closed: what is said on that would go into the file.
int make_new(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (descriptor < 0 || descriptor > STDERR_FILENO) return descriptor;
  const int above = control(descriptor, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  ::close(descriptor);
  return above;
}

// Of this process and not of its children; gone with it.
bool lock(int descriptor) {
  struct flock whole {};
  whole.l_type = F_WRLCK;
  whole.l_whence = SEEK_SET;
  return control(descriptor, F_SETLK, reinterpret_cast<long>(&whole)) == 0;
}

enum class There { removed, in_use, problem };

// Replaced, never cut: a process that has it mapped would die of that.
There remove_old(const std::string& path) {
  struct stat old {};
  if (::stat(path.c_str(), &old) != 0) return There::problem;
  if (!S_ISREG(old.st_mode)) {
    errno = EINVAL;
    return There::problem;
  }
  const int descriptor = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (descriptor < 0) return There::problem;
  const bool in_use = !lock(descriptor);
  const bool removed = !in_use && ::unlink(path.c_str()) == 0;
  const int cause = errno;
  ::close(descriptor);
  errno = cause;
  return in_use ? There::in_use : removed ? There::removed : There::problem;
}

}  // namespace

std::string File::open(std::string& path) {
  descriptor_ = make_new(path);
  if (descriptor_ < 0 && errno == EEXIST) {
    switch (remove_old(path)) {
      case There::problem: return std::strerror(errno);
      case There::removed: break;
      case There::in_use:
        path += "." + std::to_string(::getpid());
        ::unlink(path.c_str());  // of an earlier process with our number
    }
    descriptor_ = make_new(path);
  }
  if (descriptor_ < 0) return std::strerror(errno);
  lock(descriptor_);
  return ::fstat(descriptor_, &identity_) == 0 ? "" : std::strerror(errno);
}

std::string File::make(std::string& path, std::uint64_t capacity) {
  if (std::string problem = open(path); !problem.empty()) return problem;
  if (const int error = reach(0, kHeaderSize); error != 0) {
    ::unlink(path.c_str());
    ::close(descriptor_);
    return std::strerror(error);
  }
  void* mapped = ::mmap(nullptr, offset_of(capacity), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_, 0);
  if (mapped == MAP_FAILED) return std::strerror(errno);
  mapped_ = mapped;
  return "";
}

int File::reach(std::size_t begin, std::size_t size) noexcept {
  // A program that closes all descriptors may have a file of its own under this number.
  struct stat now {};
  if (::fstat(descriptor_, &now) != 0 || now.st_dev != identity_.st_dev || now.st_ino != identity_.st_ino)
    return EBADF;
  // Beyond it comes a signal that ends the process.
  rlimit largest{};
  if (::getrlimit(RLIMIT_FSIZE, &largest) == 0 && largest.rlim_cur != RLIM_INFINITY &&
      begin + size > largest.rlim_cur)
    return EFBIG;
  int error = 0;
  do {
    error = ::posix_fallocate(descriptor_, static_cast<off_t>(begin), static_cast<off_t>(size));
  } while (error == EINTR);
  return error;
}

int File::extend(std::uint64_t first, std::uint64_t count) noexcept {
  return reach(offset_of(first), count * kChunkSize);
}

void File::touch(std::uint64_t first, std::uint64_t count) noexcept {
  ::madvise(&chunk(first), count * kChunkSize, kPopulateWrite);
}

}  // namespace tidepool::trace
