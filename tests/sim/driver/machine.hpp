// The physical memory of the devices: how much there is, how much is used and by which process.
//
// Without SIM_MACHINE the books are the process's own. With it they lie in that file, shared by
// all processes that name it; a process that was killed is struck off by whoever looks next.
#pragma once
#include <cstdint>
#include <vector>

namespace sim {

constexpr int max_devices = 16;
constexpr std::uint64_t page =
    2ull << 20;  // what the driver hands out physical memory in (documented by the granularity)

class Machine {
 public:
  struct Usage {
    int pid;
    std::uint64_t bytes;
  };

  static Machine& instance();

  // Takes bytes of the device's budget; false if less is left.
  bool acquire(int device, std::uint64_t bytes);
  void release(int device, std::uint64_t bytes);
  std::uint64_t used(int device);  // by all processes
  std::uint64_t own(int device) const { return own_[device]; }
  std::uint64_t own_peak(int device) const { return peak_[device]; }
  std::vector<Usage> processes(int device);

 private:
  struct Slot;
  Machine();
  void open_books(const char* path);
  Slot* own_slot();
  std::uint64_t sum(int device) const;
  void strike_off_dead();

  Slot* slots_ = nullptr;  // null: no shared books
  Slot* mine_ = nullptr;
  int file_ = -1;
  std::uint64_t own_[max_devices] = {};
  std::uint64_t peak_[max_devices] = {};
};

}  // namespace sim
