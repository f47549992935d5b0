// For tests of what is asynchronous: the simulator's own kernels, streams of known kinds, and a device
// that is busy for longer than any test takes. A wait costs nothing, since the clock jumps.
#pragma once
#include <cstring>

#include "driver.hpp"

constexpr std::uint64_t long_time = 60'000'000'000;  // ns

// The functions of the simulator's module, loaded into the current context.
class Kernels {
 public:
  explicit Kernels(const char* text =
                       "//tidepool-sim\nkernel sim_fill\nkernel sim_copy\nkernel sim_add\n"
                       "kernel sim_spin\n") {
    REQUIRE(CU(cuModuleLoadData)(&module_, text) == CUDA_SUCCESS);
  }
  CUfunction function(const char* name) const {
    CUfunction found = nullptr;
    REQUIRE(CU(cuModuleGetFunction)(&found, module_, name) == CUDA_SUCCESS);
    return found;
  }
  CUresult launch(const char* name, CUstream stream, std::vector<std::uint64_t> words) const {
    std::vector<void*> parameters;
    for (auto& word : words) parameters.push_back(&word);
    return CU(cuLaunchKernel)(function(name), 1, 1, 1, 1, 1, 1, 0, stream, parameters.data(), nullptr);
  }
  void fill(CUstream stream, CUdeviceptr to, unsigned value, std::uint64_t count = 1) const {
    REQUIRE(launch("sim_fill", stream, {to, value, count}) == CUDA_SUCCESS);
  }
  // Keeps the stream busy.
  void spin(CUstream stream, std::uint64_t ns = long_time) const {
    REQUIRE(launch("sim_spin", stream, {ns}) == CUDA_SUCCESS);
  }

 private:
  CUmodule module_ = nullptr;
};

inline CUstream new_stream(unsigned flags = CU_STREAM_NON_BLOCKING) {
  CUstream stream = nullptr;
  REQUIRE(CU(cuStreamCreate)(&stream, flags) == CUDA_SUCCESS);
  return stream;
}

inline CUevent new_event(unsigned flags = CU_EVENT_DISABLE_TIMING) {
  CUevent event = nullptr;
  REQUIRE(CU(cuEventCreate)(&event, flags) == CUDA_SUCCESS);
  return event;
}

inline CUevent recorded(CUstream stream, unsigned flags = CU_EVENT_DISABLE_TIMING) {
  const CUevent event = new_event(flags);
  REQUIRE(CU(cuEventRecord)(event, stream) == CUDA_SUCCESS);
  return event;
}

// Zeroed, by the host: device memory is host memory here.
inline CUdeviceptr block_of(std::size_t bytes) {
  CUdeviceptr block = 0;
  REQUIRE(CU(cuMemAlloc_v2)(&block, bytes) == CUDA_SUCCESS);
  std::memset(reinterpret_cast<void*>(block), 0, bytes);
  return block;
}

// What is there, without asking the driver.
inline unsigned peek(CUdeviceptr address) {
  return __atomic_load_n(reinterpret_cast<const unsigned*>(address), __ATOMIC_RELAXED);
}
