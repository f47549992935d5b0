// A program in need of memory: needy STEP…, each step one of
//   start          the driver, and the primary context
//   alloc:MIB      cuMemAlloc
//   async:MIB      cuMemAllocAsync
//   create:MIB     cuMemCreate
//   host:MIB       cuMemHostAlloc
//   module         cuModuleLoadData
//   cudnn:MIB      cuMemAlloc, called by a library of that name
//   threads:N:MIB  cuMemAlloc in each of N threads at once
//   broke          from here on the host has no memory for the shim: its malloc fails
//   sleep:MS
//   fork           goes on in a child
//   _exit          ends by _exit with the code
// Says "done" and exits with 0, or "error N" at the first step that the driver refuses, and exits with 1;
// with NEEDY_IGNORES set it goes on to the next step instead, and ends well.
#include <link.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <string_view>
#include <thread>
#include <vector>

#include "tests/preload/victims/driver.hpp"

namespace {

// Where the shim is in memory, once the host has no memory for it; for others it has, or the simulated driver
// would not come to its answer.
std::atomic<std::uintptr_t> shim_begin{0}, shim_end{0};

bool is_shim(void* caller) {
  const auto address = reinterpret_cast<std::uintptr_t>(caller);
  return address >= shim_begin && address < shim_end;
}

int find_shim(dl_phdr_info* info, std::size_t, void*) {
  if (std::strstr(info->dlpi_name, "libtidepool.so") == nullptr) return 0;
  shim_begin = info->dlpi_addr;
  for (int i = 0; i < info->dlpi_phnum; ++i)
    if (info->dlpi_phdr[i].p_type == PT_LOAD)
      shim_end = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr + info->dlpi_phdr[i].p_memsz;
  return 1;
}

double cpu_milliseconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

std::size_t number(std::string_view step, std::size_t which = 0) {
  for (std::size_t i = 0; i <= which; ++i) step.remove_prefix(std::min(step.find(':') + 1, step.size()));
  return std::strtoull(step.data(), nullptr, 10);
}

CUresult allocate(std::size_t bytes) {
  CUdeviceptr pointer = 0;
  return CU(cuMemAlloc_v2)(&pointer, bytes);
}

CUresult create(std::size_t bytes) {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, {0}};
  CUmemGenericAllocationHandle handle = 0;
  return CU(cuMemCreate)(&handle, bytes, &properties, 0);
}

CUresult allocate_in_threads(std::size_t count, std::size_t bytes) {
  CUcontext context = nullptr;
  OK(CU(cuCtxGetCurrent)(&context));
  std::atomic<int> worst{0};
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < count; ++i)
    threads.emplace_back([&] {
      OK(CU(cuCtxSetCurrent)(context));
      if (const CUresult result = allocate(bytes); result != CUDA_SUCCESS) worst = result;
    });
  for (std::thread& thread : threads) thread.join();
  return static_cast<CUresult>(worst.load());
}

CUresult library(std::size_t bytes) {
  void* const handle = dlopen(CUDNN, RTLD_NOW);
  HOLDS(handle != nullptr);
  return reinterpret_cast<CUresult (*)(std::size_t)>(dlsym(handle, "library_create"))(bytes);
}

CUresult start() {
  CUcontext context = nullptr;
  CUresult result = CU(cuInit)(0);
  if (result == CUDA_SUCCESS) result = CU(cuDevicePrimaryCtxRetain)(&context, 0);
  return result == CUDA_SUCCESS ? CU(cuCtxSetCurrent)(context) : result;
}

CUresult take(std::string_view step) {
  CUdeviceptr pointer = 0;
  void* memory = nullptr;
  CUmodule module = nullptr;
  const std::string_view verb = step.substr(0, step.find(':'));
  const std::size_t bytes = number(step) * kMiB;
  if (verb == "start") return start();
  if (verb == "alloc") return allocate(bytes);
  if (verb == "async") return CU(cuMemAllocAsync)(&pointer, bytes, nullptr);
  if (verb == "create") return create(bytes);
  if (verb == "cudnn") return library(bytes);
  if (verb == "host") return CU(cuMemHostAlloc)(&memory, bytes, 0);
  if (verb == "module") return CU(cuModuleLoadData)(&module, "//tidepool-sim\nkernel sim_fill\n");
  if (verb == "threads") return allocate_in_threads(number(step), number(step, 1) * kMiB);
  if (verb == "broke") return dl_iterate_phdr(find_shim, nullptr), CUDA_SUCCESS;
  if (verb == "sleep")
    return std::this_thread::sleep_for(std::chrono::milliseconds(number(step))), CUDA_SUCCESS;
  std::printf("no such step: %.*s\n", static_cast<int>(step.size()), step.data());
  std::exit(3);
}

int play(int count, char** steps) {
  for (int i = 1; i < count; ++i) {
    if (std::strcmp(steps[i], "fork") == 0) {
      const pid_t child = ::fork();
      if (child == 0) continue;
      int status = 0;
      ::waitpid(child, &status, 0);
      return WEXITSTATUS(status);
    }
    if (std::strcmp(steps[i], "_exit") == 0) ::_exit(1);
    const double before = cpu_milliseconds();
    const CUresult result = take(steps[i]);
    if (result == CUDA_SUCCESS) continue;
    std::printf("error %d after %.1f ms of work\n", result, cpu_milliseconds() - before);
    std::fflush(stdout);
    if (std::getenv("NEEDY_IGNORES") == nullptr && std::strcmp(steps[count - 1], "_exit") != 0) return 1;
  }
  std::printf("done\n");
  return 0;
}

}  // namespace

// The program's own malloc is everybody's, the shim's and the simulator's too.
extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* malloc(std::size_t size) {
  return is_shim(__builtin_return_address(0)) ? nullptr : __libc_malloc(size);
}
void* calloc(std::size_t count, std::size_t size) {
  return is_shim(__builtin_return_address(0)) ? nullptr : __libc_calloc(count, size);
}
void* realloc(void* block, std::size_t size) {
  return is_shim(__builtin_return_address(0)) ? nullptr : __libc_realloc(block, size);
}
}

int main(int count, char** steps) { return play(count, steps); }
