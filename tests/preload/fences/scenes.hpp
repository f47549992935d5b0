// Programs whose memory is still in use by the device when they free it, each in another way. Right on
// any driver; wrong with an arena that gives memory out too early.
#pragma once
#include <cstdint>

#include "tests/preload/victims/driver.hpp"

// Launches of the simulated device's own kernels, which read and write when their turn comes.
class Kernels {
 public:
  Kernels();  // for the current context

  // Writes value to the block's words, in 5 ms of the device's time; for_long: in 2 s.
  void fill_slowly(CUstream stream, CUdeviceptr block, std::size_t bytes, std::uint32_t value) const;
  void fill_for_long(CUstream stream, CUdeviceptr block, std::size_t bytes, std::uint32_t value) const;
  void fill(CUstream stream, CUdeviceptr block, std::size_t bytes, std::uint32_t value) const;

 private:
  CUfunction slow_ = nullptr, slowest_ = nullptr, fast_ = nullptr;
};

CUstream new_stream();
// Ends the program unless every word of the block is value.
void must_hold(CUdeviceptr block, std::size_t bytes, std::uint32_t value);

// kernel.cpp: memory of cuMemAlloc
void freed_in_flight();
void freed_in_flight_elsewhere();
void used_elsewhere();
void context_ends_in_flight();
// stream.cpp: stream-ordered memory
void taken_by_another_stream();
void taken_when_short();
void taken_when_short_elsewhere();
void taken_by_the_next_stream();
void taken_by_another_thread();
void taken_by_another_context();
void taken_in_parts();
void handed_back_in_flight();
void pool_trimmed_in_flight();
// beside.cpp: what other threads do meanwhile
void freed_while_waiting();
void captured_beside_frees();
// captures.cpp: captures beside all that other threads do
void captured_beside_all();
// storm.cpp: all of it at random
void storm();
