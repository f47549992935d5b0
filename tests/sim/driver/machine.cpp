// Budget books; see machine.hpp. Callers hold the driver's lock, other processes are kept out by flock.
#include "machine.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>

#include "layout.hpp"
#include "settings.hpp"

namespace sim {
namespace {

constexpr int max_slots = 512;

class FileLock {
 public:
  explicit FileLock(int file) : file_(file) {
    while (file_ >= 0 && ::flock(file_, LOCK_EX) && errno == EINTR) {
    }
  }
  ~FileLock() {
    if (file_ >= 0) ::flock(file_, LOCK_UN);
  }
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  int file_;
};

}  // namespace

// A zombie holds no memory any more, whatever its parent waits for.
std::uint64_t start_time(int pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string text{std::istreambuf_iterator<char>(file), {}};
  const auto close = text.rfind(')');  // the name before it may hold spaces
  if (close == std::string::npos) return 0;
  const char* at = text.c_str() + close + 2;
  if (*at == 'Z' || *at == 'X') return 0;
  for (int field = 3; field < 22; ++field) {
    at = std::strchr(at, ' ');
    if (!at) return 0;
    ++at;
  }
  return std::strtoull(at, nullptr, 10);
}

// A slot belongs to the process that has this pid and this start time.
struct Machine::Slot {
  std::int64_t pid;
  std::uint64_t started;
  std::uint64_t used[max_partitions];
};

Machine& Machine::instance() {
  static Machine* const machine = new Machine;
  return *machine;
}

Machine::Machine() {
  if (!settings().machine.empty()) open_books(settings().machine.c_str());
}

void Machine::open_books(const char* path) {
  constexpr std::size_t bytes = sizeof(Slot) * max_slots;
  file_ = ::open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  void* books = MAP_FAILED;
  if (file_ >= 0 && ::ftruncate(file_, bytes) == 0)
    books = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
  if (books == MAP_FAILED) {
    std::fprintf(stderr, "simulated GPU: cannot use SIM_MACHINE %s: %s\n", path, std::strerror(errno));
    std::abort();
  }
  slots_ = static_cast<Slot*>(books);
}

Machine::Slot* Machine::own_slot() {
  if (mine_) return mine_;
  for (Slot* slot = slots_; slot != slots_ + max_slots; ++slot) {
    if (slot->pid && start_time(static_cast<int>(slot->pid)) == slot->started) continue;
    *slot = {getpid(), start_time(getpid()), {}};
    return mine_ = slot;
  }
  return nullptr;
}

std::uint64_t Machine::sum(int partition) const {
  std::uint64_t total = 0;
  for (const Slot* slot = slots_; slot != slots_ + max_slots; ++slot)
    if (slot->pid) total += slot->used[partition];
  return total;
}

void Machine::strike_off_dead() {
  for (Slot* slot = slots_; slot != slots_ + max_slots; ++slot)
    if (slot->pid && slot != mine_ && start_time(static_cast<int>(slot->pid)) != slot->started) *slot = {};
}

bool Machine::acquire(int partition, std::uint64_t bytes) {
  const FileLock lock(file_);
  const auto fits = [&] {
    const std::uint64_t now = slots_ ? sum(partition) : own_[partition];
    return bytes <= partition_memory() && now <= partition_memory() - bytes;
  };
  if (!fits()) {
    if (!slots_) return false;
    strike_off_dead();
    if (!fits()) return false;
  }
  if (slots_) {
    Slot* slot = own_slot();
    if (!slot) return false;
    slot->used[partition] += bytes;
  }
  own_[partition] += bytes;
  peak_[partition] = std::max(peak_[partition], own_[partition]);
  return true;
}

void Machine::release(int partition, std::uint64_t bytes) {
  const FileLock lock(file_);
  own_[partition] -= bytes;
  if (slots_ && mine_) mine_->used[partition] -= bytes;
}

std::uint64_t Machine::used(int partition) {
  const FileLock lock(file_);
  if (!slots_) return own_[partition];
  strike_off_dead();
  return sum(partition);
}

std::vector<Machine::Usage> Machine::processes(int partition) {
  const FileLock lock(file_);
  if (!slots_) return {{getpid(), own_[partition]}};
  strike_off_dead();
  std::vector<Usage> result;
  for (Slot* slot = slots_; slot != slots_ + max_slots; ++slot)
    if (slot->pid && slot->used[partition])
      result.push_back({static_cast<int>(slot->pid), slot->used[partition]});
  return result;
}

}  // namespace sim
