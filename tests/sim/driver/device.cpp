// Device memory; see device.hpp. Callers hold the driver's lock.
#include "device.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "layout.hpp"
#include "rules.hpp"

namespace sim {
namespace {

constexpr std::uint64_t unit = 512;             // alignment of small blocks (guess; cuda.h asks for 256)
constexpr std::uint64_t small_limit = 1 << 20;  // guess: from here on a block has pages of its own
constexpr std::uint64_t punch_limit = 16 << 20;
constexpr std::uint64_t pages_end = 1ull << 46;  // offsets of cuMemCreate: no fragmentation to think of

bool is_small(std::uint64_t bytes) { return bytes < small_limit && rules().small_blocks_share; }

}  // namespace

Device::Device(int ordinal, int partition) : ordinal_(ordinal), partition_(partition) {
  file_ = ::memfd_create("simulated-device", MFD_CLOEXEC);
  // Four times the budget of addresses, so that fragments of the heap never refuse what the budget has.
  heap_bytes_ = round_up(partition_memory(), page) * 4 + (1ull << 30);
  void* base = MAP_FAILED;
  if (file_ >= 0 && ::ftruncate(file_, static_cast<off_t>(pages_end)) == 0) {
    // Aligned by hand: blocks of 2 MiB and more are aligned to 2 MiB, as the driver's are.
    base = ::mmap(nullptr, heap_bytes_ + page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base != MAP_FAILED) {
      heap_base_ = round_up(reinterpret_cast<std::uint64_t>(base), page);
      base = ::mmap(reinterpret_cast<void*>(heap_base_), heap_bytes_, PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_FIXED | MAP_NORESERVE, file_, 0);
    }
  }
  if (base == MAP_FAILED) {
    std::perror("simulated GPU: no address space for device memory");
    std::abort();
  }
  ::madvise(base, heap_bytes_, MADV_DONTDUMP);
  large_.give(heap_base_, heap_bytes_);
  offsets_.give(heap_bytes_, pages_end - heap_bytes_);
}

CUuuid Device::uuid() const {
  const Uuid own = partition_uuid(partition_);
  CUuuid result{};
  std::memcpy(result.bytes, own.data(), own.size());
  return result;
}

std::uint64_t Device::total() const { return partition_memory(); }

std::uint64_t Device::free() {
  const std::uint64_t used = Machine::instance().used(partition_);
  return used < total() ? total() - used : 0;
}

std::uint64_t Device::footprint(std::uint64_t bytes) {
  return is_small(bytes) ? round_up(bytes, unit) : round_up(bytes, page);
}

std::uint64_t Device::take_pages(Ranges& from, std::uint64_t bytes) {
  if (!Machine::instance().acquire(partition_, bytes)) return 0;
  const std::uint64_t base = from.take(bytes, page);
  if (!base) Machine::instance().release(partition_, bytes);
  return base;
}

// Gives the host its memory back. Small pieces are not worth a system call: they are used again.
void Device::punch(std::uint64_t offset, std::uint64_t bytes) {
  if (bytes >= punch_limit)
    ::fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
                static_cast<off_t>(bytes));
}

std::uint64_t Device::allocate(std::uint64_t bytes) {
  const std::uint64_t size = footprint(bytes);
  if (!size || size < bytes) return 0;
  if (!is_small(bytes)) return take_pages(large_, size);
  if (const std::uint64_t base = small_.take(size, unit)) return base;
  const std::uint64_t fresh = take_shared_page();
  if (fresh && size < page) small_.give(fresh + size, page - size);
  return fresh;
}

// The last page that small blocks had to themselves comes first: it lies aside for them.
std::uint64_t Device::take_shared_page() {
  if (!spare_) return take_pages(large_, page);
  if (!Machine::instance().acquire(partition_, page)) return 0;
  return std::exchange(spare_, 0);
}

void Device::release(std::uint64_t base, std::uint64_t bytes) {
  const std::uint64_t size = footprint(bytes);
  if (!is_small(bytes)) {
    punch(base - heap_base_, size);
    large_.give(base, size);
    Machine::instance().release(partition_, size);
    return;
  }
  const auto [start, length] = small_.give(base, size);
  const std::uint64_t whole = base / page * page;
  if (start > whole || start + length < whole + page) return;
  small_.take_at(whole, page);  // nobody is left on this page
  if (spare_)
    large_.give(whole, page);
  else
    spare_ = whole;
  Machine::instance().release(partition_, page);
}

bool Device::charge(std::uint64_t bytes) { return Machine::instance().acquire(partition_, bytes); }
void Device::discharge(std::uint64_t bytes) { Machine::instance().release(partition_, bytes); }

std::uint64_t Device::create_pages(std::uint64_t bytes) { return take_pages(offsets_, bytes); }

void Device::release_pages(std::uint64_t offset, std::uint64_t bytes) {
  punch(offset, bytes);
  offsets_.give(offset, bytes);
  Machine::instance().release(partition_, bytes);
}

}  // namespace sim
