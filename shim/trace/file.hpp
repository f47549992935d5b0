// The file of a trace: made, mapped whole, and longer as chunks are needed. What lies in it is the
// recorder's.
//
// Nothing may be touched in the mapping that the file does not have yet: that is a bus error. So each chunk
// is asked of the file system before its first use, room on the disk included.
//
// Threading: make() once; extend() by any thread, no lock.
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "shim/trace/format.hpp"

namespace tidepool::trace {

class File {
 public:
  // Returns what went wrong, empty for nothing. `path` may come to be another one, see recorder.hpp.
  std::string make(std::string& path, std::uint64_t capacity);

  Header& header() const { return *static_cast<Header*>(mapped_); }
  Chunk& chunk(std::uint64_t index) const {
    return *reinterpret_cast<Chunk*>(static_cast<char*>(mapped_) + offset_of(index));
  }

  // Has the file hold these chunks; an errno, 0 for success. Idempotent.
  int extend(std::uint64_t first, std::uint64_t count) noexcept;
  // Has their pages in memory, if the kernel can (Linux 5.14).
  void touch(std::uint64_t first, std::uint64_t count) noexcept;

 private:
  static std::size_t offset_of(std::uint64_t index) { return kHeaderSize + index * kChunkSize; }
  std::string open(std::string& path);
  int reach(std::size_t begin, std::size_t size) noexcept;

  int descriptor_ = -1;
  struct stat identity_ {};
  void* mapped_ = nullptr;
};

}  // namespace tidepool::trace
