// Writes what happens to device memory into a file that is mapped, so that what was written is there whatever
// ends the process. The file grows to a bound, then the oldest records give way.
//
// Threading: any thread. An event takes no lock and allocates nothing: a thread writes into a chunk of its
// own, and takes another by an increment. A thread of ours goes ahead and makes the file larger; where it is
// late, or gone, the event's own thread does that. Errors: the recording stops, with one warning.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "policies/units.hpp"
#include "shim/trace/format.hpp"

namespace tidepool::trace {

struct Event {
  Action action{};
  Family family{};
  Source source{};
  int device = 0;
  std::uint64_t address = 0;
  Bytes size = 0;
  std::uint64_t stream = 0;
  std::uint64_t owner = 0;
  Bytes held = 0;
};

struct Options {
  std::string path;
  std::string mode;
  std::vector<std::string> command;
  Bytes most = kGiB;  // of records
};

// Once per process, before its first event. Returns what went wrong, empty for nothing: if the file is being
// written by a living process, `path` is given that of this process, with its id appended. A file that is
// there already, of a process that ended, is replaced.
std::string start(Options& options);

void add_device(int ordinal, std::string_view uuid, std::string_view name, Bytes total) noexcept;

// The process is about to end. Later events are still recorded.
void note_end() noexcept;

extern constinit std::atomic<bool> recording;
inline bool on() noexcept { return recording.load(std::memory_order_relaxed); }

std::uint64_t now() noexcept;

// Requires: on(). `time` is now() at the event; of a free, from before it: another thread may be given the
// memory at once, and its allocation comes later.
void write(const Event& event, std::uint64_t time) noexcept;

// A moment before something that may become an event.
class Moment {
 public:
  Moment() noexcept : time_(on() ? now() : 0) {}
  bool is_taken() const { return time_ != 0; }
  std::uint64_t time() const { return time_; }

 private:
  std::uint64_t time_;
};

}  // namespace tidepool::trace
