// Calls the simulated driver as programs do: dlopen, dlsym, and no link to it.
#pragma once
#include <cuda.h>
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

inline void* library() {
  static void* const handle = dlopen(std::getenv("SIM_TEST_LIBCUDA"), RTLD_NOW | RTLD_LOCAL);
  return handle;
}

inline void* symbol(const char* name) {
  if (!library()) FAIL("no libcuda: " << dlerror());
  void* const address = dlsym(library(), name);
  if (!address) FAIL("not exported: " << name);
  return address;
}

// The exported entry of that exact name, with cuda.h's signature.
#define CU(name)                                                                  \
  ([] {                                                                           \
    static const auto entry = reinterpret_cast<decltype(&::name)>(symbol(#name)); \
    return entry;                                                                 \
  }())

constexpr std::size_t kib = 1 << 10, mib = 1 << 20, gib = 1 << 30;

// A context of its own on device 0, current while it lives.
class OwnContext {
 public:
  explicit OwnContext(int device = 0) {
    REQUIRE(CU(cuInit)(0) == CUDA_SUCCESS);
    REQUIRE(CU(cuCtxCreate_v2)(&handle, 0, device) == CUDA_SUCCESS);
  }
  ~OwnContext() {
    if (handle) CU(cuCtxDestroy_v2)(handle);
  }
  OwnContext(const OwnContext&) = delete;
  OwnContext& operator=(const OwnContext&) = delete;
  CUcontext handle = nullptr;
};

inline std::size_t free_bytes() {
  std::size_t free = 0, total = 0;
  REQUIRE(CU(cuMemGetInfo_v2)(&free, &total) == CUDA_SUCCESS);
  return free;
}

inline CUmemAllocationProp on_device(int device) {
  CUmemAllocationProp prop{};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location = {CU_MEM_LOCATION_TYPE_DEVICE, {device}};
  return prop;
}

// Runs the body in a child process: its answer, or minus the signal that killed it.
inline int in_child(const std::function<int()>& body) {
  const pid_t child = fork();
  if (!child) {
    try {
      _exit(body());
    } catch (...) {  // a REQUIRE that failed: the child must not go on with its parent's other cases
      _exit(99);
    }
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}
