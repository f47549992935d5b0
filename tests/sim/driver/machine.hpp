// The physical memory of the devices: how much there is, how much is used and by which process.
//
// Without SIM_MACHINE the books are the process's own. With it they lie in that file, shared by
// all processes that name it; a process that was killed is struck off by whoever looks next.
#pragma once
#include <cstdint>
#include <vector>

namespace sim {

constexpr int max_partitions = 16;
constexpr std::uint64_t page =
    2ull << 20;  // what the driver hands out physical memory in (documented by the granularity)

// When a living process started, in clock ticks; 0 if there is none with this pid. Pids are reused: with
// the start time they name one process.
std::uint64_t start_time(int pid);

class Machine {
 public:
  struct Usage {
    int pid;
    std::uint64_t bytes;
  };

  static Machine& instance();

  // Takes bytes of the partition's budget; false if less is left.
  bool acquire(int partition, std::uint64_t bytes);
  void release(int partition, std::uint64_t bytes);
  std::uint64_t used(int partition);  // by all processes
  std::uint64_t own(int partition) const { return own_[partition]; }
  std::uint64_t own_peak(int partition) const { return peak_[partition]; }
  std::vector<Usage> processes(int partition);

 private:
  struct Slot;
  Machine();
  void open_books(const char* path);
  Slot* own_slot();
  std::uint64_t sum(int partition) const;
  void strike_off_dead();

  Slot* slots_ = nullptr;  // null: no shared books
  Slot* mine_ = nullptr;
  int file_ = -1;
  std::uint64_t own_[max_partitions] = {};
  std::uint64_t peak_[max_partitions] = {};
};

}  // namespace sim
