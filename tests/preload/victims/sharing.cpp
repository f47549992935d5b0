// Memory that is shown to others: to another process by cuIpcGetMemHandle, and to whoever asks the driver
// what a pointer is. What is printed must be equal with and without the shim.
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <string>

#include "tests/preload/victims/driver.hpp"
#include "tests/preload/victims/scenarios.hpp"

namespace {

constexpr std::size_t kSize = 3 * kMiB;
constexpr std::size_t kOffset = kMiB + 512;

void write(CUdeviceptr at, unsigned value) { OK(CU(cuMemcpyHtoD_v2)(at, &value, sizeof value)); }
unsigned read(CUdeviceptr at) {
  unsigned value = 0;
  OK(CU(cuMemcpyDtoH_v2)(&value, at, sizeof value));
  return value;
}

template <typename Value>
void send(int socket, const Value& value) {
  HOLDS(::write(socket, &value, sizeof value) == static_cast<ssize_t>(sizeof value));
}
template <typename Value>
Value receive(int socket) {
  Value value{};
  HOLDS(::read(socket, &value, sizeof value) == static_cast<ssize_t>(sizeof value));
  return value;
}

}  // namespace

// The other process: opens the block twice, reads, writes, closes.
void ipc_opener() {
  const int socket = std::stoi(getenv("IPC_SOCKET"));
  start_driver();
  for (unsigned round = 0; round < 2; ++round) {
    const auto handle = receive<CUipcMemHandle>(socket);
    const auto offset = receive<std::size_t>(socket);
    CUdeviceptr base = 0, again = 0;
    OK(CU(cuIpcOpenMemHandle_v2)(&base, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    OK(CU(cuIpcOpenMemHandle_v2)(&again, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    HOLDS(again == base);
    HOLDS(read(base + offset) == 10 + round);
    write(base + offset, 20 + round);
    OK(CU(cuIpcCloseMemHandle)(base));
    OK(CU(cuIpcCloseMemHandle)(again));
    send(socket, round);
  }
}

// As PyTorch and cuda-python do: what is exported is the base of the block around a pointer. The second round
// asks for an equal block, which must be another one: the first may still be open elsewhere.
void ipc_exporter() {
  int sockets[2];
  HOLDS(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) == 0);
  const pid_t child = fork();
  if (child == 0) {
    close(sockets[0]);
    setenv("IPC_SOCKET", std::to_string(sockets[1]).c_str(), 1);
    if (getenv("IPC_BARE") != nullptr) unsetenv("LD_PRELOAD");
    unsetenv("TIDEPOOL_REPORT");
    unsetenv("SIM_LOG");
    execl("/proc/self/exe", "victim", "ipc_opener", nullptr);
    _exit(9);
  }
  close(sockets[1]);
  start_driver();
  for (unsigned round = 0; round < 2; ++round) {
    CUdeviceptr block = 0, base = 0;
    std::size_t size = 0;
    OK(CU(cuMemAlloc_v2)(&block, kSize));
    const CUdeviceptr inside = block + kOffset;
    write(inside, 10 + round);
    OK(CU(cuMemGetAddressRange_v2)(&base, &size, inside));
    HOLDS(base == block && size == kSize);
    CUipcMemHandle handle{};
    OK(CU(cuIpcGetMemHandle)(&handle, base));
    send(sockets[0], handle);
    send(sockets[0], inside - base);
    receive<unsigned>(sockets[0]);
    HOLDS(read(inside) == 20 + round);
    OK(CU(cuMemFree_v2)(block));
  }
  int status = 0;
  HOLDS(waitpid(child, &status, 0) == child);
  HOLDS(status == 0);
}

namespace {

// Without what differs from run to run: addresses are told from the block's own.
void print_attribute(const char* way, int attribute, CUresult result, std::uint64_t value,
                     CUdeviceptr block) {
  CUcontext context = nullptr;
  OK(CU(cuCtxGetCurrent)(&context));
  CUmemoryPool pool = nullptr;
  OK(CU(cuDeviceGetDefaultMemPool)(&pool, 0));
  std::string said = std::to_string(value);
  if (value >= block && value - block <= kSize) said = "block + " + std::to_string(value - block);
  if (value == reinterpret_cast<std::uint64_t>(context)) said = "the context";
  if (value == reinterpret_cast<std::uint64_t>(pool)) said = "the pool";
  const bool is_id =
      attribute == CU_POINTER_ATTRIBUTE_BUFFER_ID || attribute == CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID;
  if (is_id && value != 0) said = "some number";
  std::printf("  %s %d: %d, %s\n", way, attribute, static_cast<int>(result), said.c_str());
}

void print_all(const char* what, CUdeviceptr pointer, CUdeviceptr block) {
  std::printf("%s\n", what);
  for (int number = CU_POINTER_ATTRIBUTE_CONTEXT; number <= CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE;
       ++number) {
    auto attribute = static_cast<CUpointer_attribute>(number);
    // Written on success only, and as wide as the attribute is.
    std::uint64_t one[2] = {}, plural[2] = {};
    void* values[] = {plural};
    const CUresult alone = CU(cuPointerGetAttribute)(one, attribute, pointer);
    print_attribute("alone", number, alone, one[0], block);
    const CUresult together = CU(cuPointerGetAttributes)(1, &attribute, values, pointer);
    print_attribute("in plural", number, together, plural[0], block);
  }
  CUdeviceptr base = 0;
  std::size_t size = 0;
  const CUresult range = CU(cuMemGetAddressRange_v2)(&base, &size, pointer);
  std::printf("  range: %d, %d, %zu\n", static_cast<int>(range), base == block, size);
  CUmemGenericAllocationHandle handle = 0;
  std::printf("  handle: %d\n", static_cast<int>(CU(cuMemRetainAllocationHandle)(
                                    &handle, reinterpret_cast<void*>(pointer))));  // NCCL asks this
  const CUmemLocation here{CU_MEM_LOCATION_TYPE_DEVICE, {0}};
  unsigned long long flags = 0;
  std::printf("  access: %d\n", static_cast<int>(CU(cuMemGetAccess)(&flags, &here, pointer)));
  int file = -1;
  std::printf("  file: %d\n", static_cast<int>(CU(cuMemGetHandleForAddressRange)(
                                  &file, pointer, 4096, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0)));
}

}  // namespace

void attributes_of_blocks() {
  start_driver();
  CUdeviceptr block = 0, ordered = 0;
  OK(CU(cuMemAlloc_v2)(&block, kSize));
  print_all("a block", block, block);
  print_all("inside", block + kOffset, block);
  print_all("its last byte", block + kSize - 1, block);
  OK(CU(cuMemFree_v2)(block));
  print_all("freed", block, block);
  OK(CU(cuMemAllocAsync)(&ordered, kSize, nullptr));
  print_all("stream-ordered", ordered, ordered);
  print_all("inside of it", ordered + kOffset, ordered);
  OK(CU(cuMemFreeAsync)(ordered, nullptr));
  OK(CU(cuCtxSynchronize)());
  int on_stack = 0;
  print_all("the host's", reinterpret_cast<CUdeviceptr>(&on_stack), 0);
}
