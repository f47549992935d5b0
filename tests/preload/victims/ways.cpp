// The ways to the driver: symbol by symbol, by the driver's own look-up, through the global scope.
#include "tests/preload/victims/driver.hpp"
#include "tests/preload/victims/scenarios.hpp"

namespace {

void allocate_twice(decltype(::cuMemAlloc_v2)* allocate, decltype(::cuMemFree_v2)* free_memory) {
  for (int i = 0; i < 2; ++i) {
    CUdeviceptr block = 0;
    OK(allocate(&block, 4 * kMiB));
    HOLDS(block != 0);
    OK(free_memory(block));
  }
}

template <typename Function>
Function* by_procaddress(const char* base, int version, cuuint64_t flags = 0) {
  void* entry = nullptr;
  CUdriverProcAddressQueryResult status{};
  OK(CU(cuGetProcAddress_v2)(base, &entry, version, flags, &status));
  return reinterpret_cast<Function*>(entry);
}

}  // namespace

void way_dlsym() {
  start_driver();
  allocate_twice(CU(cuMemAlloc_v2), CU(cuMemFree_v2));
}

void way_procaddress() {
  start_driver();
  allocate_twice(by_procaddress<decltype(::cuMemAlloc_v2)>("cuMemAlloc", 12000),
                 by_procaddress<decltype(::cuMemFree_v2)>("cuMemFree", 12000));
  // The look-up asks for itself, as libcudart does.
  auto* again = by_procaddress<decltype(::cuGetProcAddress_v2)>("cuGetProcAddress", 12000);
  void* entry = nullptr;
  OK(again("cuMemAlloc", &entry, 12000, 0, nullptr));
  HOLDS(entry == reinterpret_cast<void*>(CU(cuMemAlloc_v2)));
}

void way_procaddress_versions() {
  start_driver();
  // An old program gets the old ABI, one for per-thread streams gets that flavour.
  HOLDS(by_procaddress<decltype(::cuMemAlloc)>("cuMemAlloc", 2000) == CU(cuMemAlloc));
  HOLDS(by_procaddress<decltype(::cuMemAlloc_v2)>("cuMemAlloc", 3020) == CU(cuMemAlloc_v2));
  HOLDS(by_procaddress<decltype(::cuMemFreeAsync)>("cuMemFreeAsync", 12000) == CU(cuMemFreeAsync));
  HOLDS(by_procaddress<decltype(::cuMemFreeAsync_ptsz)>(
            "cuMemFreeAsync", 12000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) == CU(cuMemFreeAsync_ptsz));
  void* entry = &entry;
  CUdriverProcAddressQueryResult status{};
  OK(CU(cuGetProcAddress_v2)("cuNoSuchEntry", &entry, 12000, 0, &status));
  HOLDS(entry == nullptr && status == CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
}

void way_default_scope() {
  HOLDS(dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL) != nullptr);
  start_driver();
  allocate_twice(reinterpret_cast<decltype(::cuMemAlloc_v2)*>(dlsym(RTLD_DEFAULT, "cuMemAlloc_v2")),
                 reinterpret_cast<decltype(::cuMemFree_v2)*>(dlsym(RTLD_DEFAULT, "cuMemFree_v2")));
}

void way_reload() {
  for (int round = 0; round < 2; ++round) {
    void* handle = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    HOLDS(handle != nullptr);
    HOLDS(dlsym(handle, "cuMemAlloc_v2") != nullptr);
    dlclose(handle);
  }
  way_dlsym();
}

void no_driver_in_process() {
  // Nothing may pretend to be a driver, and the error must be the loader's own, for this very name.
  std::printf("cuInit %s\n", dlsym(RTLD_DEFAULT, "cuInit") == nullptr ? "absent" : "present");
  const char* error = dlerror();
  std::printf("%s\n", error == nullptr ? "no error" : "an error");
  std::printf("libcuda %s\n", dlopen("libcuda.so.1", RTLD_NOW) == nullptr ? "absent" : "present");
}

// With a driver that can be unloaded and answers with addresses that it does not export.
void mini_driver() {
  for (int round = 0; round < 3; ++round) {
    void* handle = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    HOLDS(handle != nullptr);
    OK(reinterpret_cast<decltype(::cuInit)*>(dlsym(handle, "cuInit"))(0));
    auto* lookup =
        reinterpret_cast<decltype(::cuGetProcAddress_v2)*>(dlsym(handle, "cuGetProcAddress_v2"));
    void* allocate = nullptr;
    void* release = nullptr;
    OK(lookup("cuMemAlloc", &allocate, 12000, 0, nullptr));
    OK(lookup("cuMemFree", &release, 12000, 0, nullptr));
    CUdeviceptr block = 0;
    OK(reinterpret_cast<decltype(::cuMemAlloc_v2)*>(allocate)(&block, kMiB));
    OK(reinterpret_cast<decltype(::cuMemFree_v2)*>(release)(block));
    HOLDS(dlsym(handle, "cuMemHostAlloc") == nullptr);
    dlclose(handle);
  }
}
