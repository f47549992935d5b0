// idle_victim SCENE: programs that fill the arena, free it all and then do nothing, each in another way.
// Right without the shim, and wrong with one whose own thread shows.
#include <dirent.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

#include "tests/preload/victims/driver.hpp"

namespace {

using namespace std::chrono_literals;

// As long as cached memory is kept; until it is going, where the driver is slow; until it has gone.
constexpr auto kShort = 3s;
constexpr auto kUntilItGoes = 7s;
constexpr auto kLong = 8s;

constexpr std::size_t kBlock = 256 * kMiB;

void use_and_free(CUstream stream, std::size_t bytes) {
  std::vector<CUdeviceptr> blocks(bytes / kBlock);
  for (CUdeviceptr& block : blocks) OK(CU(cuMemAllocAsync)(&block, kBlock, stream));
  for (CUdeviceptr block : blocks) OK(CU(cuMemFreeAsync)(block, stream));
}

CUstream new_stream() {
  CUstream stream = nullptr;
  OK(CU(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
  return stream;
}

// Memory of every kind that a shim may cache.
void use_and_free_all() {
  start_driver();
  use_and_free(new_stream(), 3 * kGiB);
  use_and_free(nullptr, kGiB);
  CUdeviceptr block = 0;
  OK(CU(cuMemAlloc_v2)(&block, kGiB));
  OK(CU(cuMemFree_v2)(block));
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, {0}};
  constexpr std::size_t kMapped = 512 * kMiB;
  CUmemGenericAllocationHandle handle = 0;
  CUdeviceptr at = 0;
  OK(CU(cuMemCreate)(&handle, kMapped, &properties, 0));
  OK(CU(cuMemAddressReserve)(&at, kMapped, 0, 0, 0));
  OK(CU(cuMemMap)(at, kMapped, 0, handle, 0));
  OK(CU(cuMemUnmap)(at, kMapped));
  OK(CU(cuMemRelease)(handle));
}

void rests_briefly() {
  use_and_free_all();
  std::this_thread::sleep_for(kShort);
}

void rests() {
  use_and_free_all();
  std::this_thread::sleep_for(kLong);
}

// Comes back for what it gave, again and again; what is given back grows rarer.
void rests_between_steps() {
  start_driver();
  const CUstream stream = new_stream();
  for (int step = 0; step < 4; ++step) {
    use_and_free(stream, kGiB);
    std::this_thread::sleep_for(7s);
  }
}

void works_on() {
  start_driver();
  const CUstream stream = new_stream();
  const auto end = std::chrono::steady_clock::now() + kLong;
  while (std::chrono::steady_clock::now() < end) {
    use_and_free(stream, kGiB);
    std::this_thread::sleep_for(1ms);
  }
}

int threads_of_process() {
  int threads = 0;
  DIR* tasks = opendir("/proc/self/task");
  while (const dirent* entry = readdir(tasks)) threads += entry->d_name[0] != '.';
  closedir(tasks);
  return threads;
}

void small_program() {
  start_driver();
  const int before = threads_of_process();
  CUdeviceptr block = 0;
  OK(CU(cuMemAlloc_v2)(&block, 32 * kMiB));
  OK(CU(cuMemFree_v2)(block));
  HOLDS(threads_of_process() == before);
}

// The child uses the heap, has one thread, and the driver refuses it.
void forks() {
  use_and_free_all();
  const auto end = std::chrono::steady_clock::now() + kLong;
  while (std::chrono::steady_clock::now() < end) {
    const pid_t child = fork();
    if (child == 0) {
      std::vector<int> heap(1000);
      CUdeviceptr block = 0;
      FAILS(CUDA_ERROR_NOT_INITIALIZED, CU(cuMemAlloc_v2)(&block, kMiB));
      HOLDS(threads_of_process() == 1);
      _exit(0);
    }
    int status = 0;
    HOLDS(waitpid(child, &status, 0) == child);
    HOLDS(status == 0);
    std::this_thread::sleep_for(5ms);
  }
}

// Until memory is going back, or would.
void rest_until_it_goes() {
  start_driver();
  use_and_free(new_stream(), 16 * kGiB);
  std::this_thread::sleep_for(kUntilItGoes);
  std::printf("done\n");
  std::fflush(stdout);
}

void ends_by_exit() {
  rest_until_it_goes();
  exit(0);
}
void ends_by_bare_exit() {
  rest_until_it_goes();
  _exit(0);
}
void ends_by_quick_exit() {
  rest_until_it_goes();
  quick_exit(0);
}
// Earlier than anything is given back: the simulated driver starts threads of its own for that, which keep
// any process.
void last_thread() {
  start_driver();
  use_and_free(new_stream(), kGiB);
  std::thread([] { std::this_thread::sleep_for(300ms); }).detach();
  std::printf("done\n");
  std::fflush(stdout);
  pthread_exit(nullptr);
}

// Nothing of ours may come between; afterwards the program rests on.
void captures_while_it_rests() {
  start_driver();
  const CUstream stream = new_stream();
  use_and_free(stream, kGiB);
  OK(CU(cuStreamBeginCapture_v2)(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  std::this_thread::sleep_for(kLong);
  CUgraph graph = nullptr;
  CUgraphExec ready = nullptr;
  OK(CU(cuStreamEndCapture)(stream, &graph));
  OK(CU(cuGraphInstantiateWithFlags)(&ready, graph, 0));
}

// Contexts come and go, and none is entered that has gone.
void contexts_while_it_rests() {
  use_and_free_all();
  CUcontext first = nullptr;
  OK(CU(cuCtxGetCurrent)(&first));
  const auto end = std::chrono::steady_clock::now() + kLong;
  while (std::chrono::steady_clock::now() < end) {
    CUcontext context = nullptr;
    OK(CU(cuCtxCreate_v2)(&context, 0, 0));
    std::this_thread::sleep_for(2ms);
    OK(CU(cuCtxDestroy_v2)(context));
    OK(CU(cuCtxSetCurrent)(first));
  }
}

// The device is busy with what was freed for longer than a program's patience.
void device_is_busy() {
  start_driver();
  const CUstream stream = new_stream();
  CUmodule module = nullptr;
  CUfunction fill = nullptr;
  OK(CU(cuModuleLoadData)(&module, "//tidepool-sim\nkernel slow = sim_fill 7000000000\n"));
  OK(CU(cuModuleGetFunction)(&fill, module, "slow"));
  CUdeviceptr block = 0;
  OK(CU(cuMemAllocAsync)(&block, kGiB, stream));
  std::uint64_t words[] = {block, 5, 1000};
  void* parameters[] = {&words[0], &words[1], &words[2]};
  OK(CU(cuLaunchKernel)(fill, 1, 1, 1, 1, 1, 1, 0, stream, parameters, nullptr));
  OK(CU(cuMemFreeAsync)(block, stream));
  std::this_thread::sleep_for(kLong);
}

}  // namespace

int main(int count, char** arguments) {
  struct Row {
    const char* name;
    void (*run)();
  };
  const Row rows[] = {{"rests_briefly", rests_briefly},
                      {"rests", rests},
                      {"rests_between_steps", rests_between_steps},
                      {"works_on", works_on},
                      {"small_program", small_program},
                      {"forks", forks},
                      {"ends_by_exit", ends_by_exit},
                      {"ends_by_bare_exit", ends_by_bare_exit},
                      {"ends_by_quick_exit", ends_by_quick_exit},
                      {"last_thread", last_thread},
                      {"captures_while_it_rests", captures_while_it_rests},
                      {"contexts_while_it_rests", contexts_while_it_rests},
                      {"device_is_busy", device_is_busy}};
  for (const Row& row : rows)
    if (count == 2 && std::strcmp(arguments[1], row.name) == 0) {
      row.run();
      std::printf("done\n");
      return 0;
    }
  std::fprintf(stderr, "usage: idle_victim SCENE\n");
  return 2;
}
