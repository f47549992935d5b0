// A device: its memory as a sparse file, and the heap that serves the cuMemAlloc family.
//
// The file stands for the physical memory. Its first part is mapped once, for the heap, so that
// an allocation costs no system call; pages of cuMemCreate lie behind it and can be mapped at
// several addresses. The file is larger than the budget: what counts is Machine, not the offset.
#pragma once
#include <cuda.h>

#include <cstdint>

#include "machine.hpp"
#include "ranges.hpp"

namespace sim {

class Device {
 public:
  Device(int ordinal, int partition);

  int ordinal() const { return ordinal_; }  // as CUDA counts
  int partition() const { return partition_; }
  CUuuid uuid() const;
  std::uint64_t total() const;
  std::uint64_t free();

  // Heap. Requests below 1 MiB share 2 MiB pages in units of 512 bytes, larger ones have whole
  // pages of their own. 0: no budget left.
  std::uint64_t allocate(std::uint64_t bytes);
  void release(std::uint64_t base, std::uint64_t bytes);

  // Budget for memory that lies in a file of its own.
  bool charge(std::uint64_t bytes);
  void discharge(std::uint64_t bytes);

  // Physical pages for cuMemCreate: an offset in file(), 0 if no budget is left.
  std::uint64_t create_pages(std::uint64_t bytes);
  void release_pages(std::uint64_t offset, std::uint64_t bytes);
  int file() const { return file_; }
  std::uint64_t offset_of(std::uint64_t base) const { return base - heap_base_; }  // of the heap's, in file()

  // What an allocation of this many bytes occupies in the heap.
  static std::uint64_t footprint(std::uint64_t bytes);

 private:
  std::uint64_t take_pages(Ranges& from, std::uint64_t bytes);
  std::uint64_t take_shared_page();
  void punch(std::uint64_t offset, std::uint64_t bytes);

  int ordinal_;
  int partition_;
  int file_ = -1;
  std::uint64_t heap_base_ = 0;
  std::uint64_t heap_bytes_ = 0;
  Ranges large_;             // whole free pages of the heap, without budget
  Ranges small_;             // free pieces of pages that small allocations share, with budget
  std::uint64_t spare_ = 0;  // such a page that is empty, without budget; 0: none
  Ranges offsets_;           // free offsets behind the heap, without budget
};

}  // namespace sim
