// Memory of one process in another: IPC handles, file descriptors of physical memory, shared pools.
#include <sys/socket.h>

#include <cstring>

#include "driver.hpp"

namespace {

// Two processes that never used the driver before, joined by a socket; 0 if both answer 0.
int exporter_and_importer(const std::function<int(int)>& exporter, const std::function<int(int)>& importer) {
  int sockets[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, sockets)) return 200;
  const pid_t child = fork();
  if (!child) _exit(exporter(sockets[0]));
  const int imported = in_child([&] { return importer(sockets[1]); });
  shutdown(sockets[1], SHUT_RDWR);  // an exporter that waits for an importer that failed goes on
  int status = 0;
  waitpid(child, &status, 0);
  close(sockets[0]);
  close(sockets[1]);
  const int exported = WIFEXITED(status) ? WEXITSTATUS(status) : 150;
  return imported ? imported : exported ? 100 + exported : 0;
}

template <typename T>
void put(int socket, const T& value) {
  REQUIRE(write(socket, &value, sizeof value) == sizeof value);
}
template <typename T>
T take(int socket) {
  T value{};
  [[maybe_unused]] const auto length = read(socket, &value, sizeof value);
  return value;
}

void put_file(int socket, int file) {
  char byte = 0, room[CMSG_SPACE(sizeof file)] = {};
  iovec data{&byte, 1};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = room;
  message.msg_controllen = sizeof room;
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  *header = {CMSG_LEN(sizeof file), SOL_SOCKET, SCM_RIGHTS};
  std::memcpy(CMSG_DATA(header), &file, sizeof file);
  REQUIRE(sendmsg(socket, &message, 0) == 1);
}

int take_file(int socket) {
  char byte = 0, room[CMSG_SPACE(sizeof(int))] = {};
  iovec data{&byte, 1};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = room;
  message.msg_controllen = sizeof room;
  int file = -1;
  if (recvmsg(socket, &message, 0) == 1 && CMSG_FIRSTHDR(&message))
    std::memcpy(&file, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof file);
  return file;
}

void* as_handle(int file) { return reinterpret_cast<void*>(static_cast<std::intptr_t>(file)); }

int start() {
  CUcontext context = nullptr;
  return CU(cuInit)(0) || CU(cuCtxCreate_v2)(&context, 0, 0) ? 1 : 0;
}

// A fill is asynchronous, and no other process's stream waits for it: it is done when this returns.
int fill(CUdeviceptr at, unsigned value, std::size_t count) {
  return CU(cuMemsetD32_v2)(at, value, count) || CU(cuCtxSynchronize)();
}

int word(CUdeviceptr at) {
  int value = -1;
  CU(cuMemcpyDtoH_v2)(&value, at, sizeof value);
  return value;
}

}  // namespace

TEST_CASE("a block is opened in another process, by its base, once for each context, and written both ways") {
  const std::size_t bytes = GENERATE(std::size_t{512}, 3 * mib);
  CHECK(exporter_and_importer(
            [&](int socket) {
              CUdeviceptr first = 0, block = 0;
              CUipcMemHandle handle{};
              // In the middle of a page, where blocks share one.
              if (start() || CU(cuMemAlloc_v2)(&first, 512) || CU(cuMemAlloc_v2)(&block, bytes)) return 1;
              if (CU(cuIpcGetMemHandle)(&handle, block + 4) != CUDA_ERROR_INVALID_VALUE) return 2;
              if (CU(cuIpcGetMemHandle)(&handle, block) || fill(block, 7, 2)) return 3;
              CUdeviceptr own = 0;
              if (CU(cuIpcOpenMemHandle_v2)(&own, handle, 1) != CUDA_ERROR_INVALID_CONTEXT) return 4;
              put(socket, handle);
              if (take<int>(socket) != 1) return 5;
              return word(block + 4) == 9 && word(block) == 7 ? 0 : 6;
            },
            [&](int socket) {
              const auto handle = take<CUipcMemHandle>(socket);
              CUdeviceptr block = 0, again = 0;
              std::size_t size = 0;
              if (start() || CU(cuIpcOpenMemHandle_v2)(&block, handle, 0) != CUDA_ERROR_INVALID_VALUE)
                return 10;
              if (CU(cuIpcOpenMemHandle_v2)(&block, handle, 1) || word(block) != 7) return 11;
              if (CU(cuIpcOpenMemHandle_v2)(&again, handle, 1) || again != block) return 12;
              if (CU(cuMemGetAddressRange_v2)(nullptr, &size, block) || size != bytes) return 13;
              if (CU(cuMemFree_v2)(block) != CUDA_ERROR_INVALID_VALUE) return 14;
              if (fill(block + 4, 9, 1) || CU(cuIpcCloseMemHandle)(block)) return 15;
              if (word(block) != 7 || CU(cuIpcCloseMemHandle)(block)) return 16;
              if (CU(cuIpcCloseMemHandle)(block) != CUDA_ERROR_INVALID_VALUE) return 17;
              put(socket, 1);
              return 0;
            }) == 0);
}

TEST_CASE("a handle of a process that is gone, and one that is none, are refused") {
  int sockets[2];
  REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) == 0);
  REQUIRE(in_child([&] {
            CUdeviceptr block = 0;
            CUipcMemHandle handle{};
            if (start() || CU(cuMemAlloc_v2)(&block, 512) || CU(cuIpcGetMemHandle)(&handle, block)) return 1;
            put(sockets[0], handle);
            return 0;
          }) == 0);
  CHECK(in_child([&] {
          auto handle = take<CUipcMemHandle>(sockets[1]);
          CUdeviceptr block = 0;
          if (start() || CU(cuIpcOpenMemHandle_v2)(&block, handle, 1) != CUDA_ERROR_MAP_FAILED) return 1;
          handle = {};
          return CU(cuIpcOpenMemHandle_v2)(&block, handle, 1) == CUDA_ERROR_INVALID_HANDLE ? 0 : 2;
        }) == 0);
  close(sockets[0]);
  close(sockets[1]);
}

TEST_CASE("physical memory made for it is exported as a descriptor, and costs its importer nothing") {
  CHECK(exporter_and_importer(
            [](int socket) {
              CUmemAllocationProp prop = on_device(0);
              CUmemGenericAllocationHandle plain = 0, handle = 0;
              int file = -1;
              if (start() || CU(cuMemCreate)(&plain, 2 * mib, &prop, 0)) return 1;
              constexpr auto type = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
              if (CU(cuMemExportToShareableHandle)(&file, plain, type, 0) != CUDA_ERROR_INVALID_VALUE)
                return 2;
              prop.requestedHandleTypes = type;
              const std::size_t before = free_bytes();
              if (CU(cuMemCreate)(&handle, 2 * mib, &prop, 0) || free_bytes() != before - 2 * mib) return 3;
              if (CU(cuMemExportToShareableHandle)(&file, handle, type, 0) || file < 0) return 4;
              CUdeviceptr base = 0;
              const CUmemAccessDesc access{{CU_MEM_LOCATION_TYPE_DEVICE, {0}},
                                           CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
              if (CU(cuMemAddressReserve)(&base, 2 * mib, 0, 0, 0) ||
                  CU(cuMemMap)(base, 2 * mib, 0, handle, 0) ||
                  CU(cuMemSetAccess)(base, 2 * mib, &access, 1) || fill(base, 5, 1))
                return 5;
              put_file(socket, file);
              if (take<int>(socket) != 1 || word(base) != 6) return 6;
              if (CU(cuMemUnmap)(base, 2 * mib) || CU(cuMemRelease)(handle)) return 7;
              return free_bytes() == before ? 0 : 8;
            },
            [](int socket) {
              const int file = take_file(socket);
              CUmemGenericAllocationHandle handle = 0;
              CUdeviceptr base = 0;
              const CUmemAccessDesc access{{CU_MEM_LOCATION_TYPE_DEVICE, {0}},
                                           CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
              constexpr auto type = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
              if (start()) return 10;
              const std::size_t before = free_bytes();
              if (CU(cuMemImportFromShareableHandle)(&handle, as_handle(socket), type) !=
                  CUDA_ERROR_INVALID_VALUE)
                return 11;
              if (CU(cuMemImportFromShareableHandle)(&handle, as_handle(file), type)) return 12;
              close(file);
              if (CU(cuMemAddressReserve)(&base, 2 * mib, 0, 0, 0) ||
                  CU(cuMemMap)(base, 2 * mib, 0, handle, 0) || CU(cuMemSetAccess)(base, 2 * mib, &access, 1))
                return 13;
              if (word(base) != 5 || fill(base, 6, 1) || free_bytes() != before) return 14;
              put(socket, 1);
              return 0;
            }) == 0);
}

TEST_CASE(
    "a pool made for it is shared, its pointers imported and freed, and it allocates for its owner only") {
  CHECK(exporter_and_importer(
            [](int socket) {
              CUmemPoolProps props{};
              props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
              props.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
              props.location = {CU_MEM_LOCATION_TYPE_DEVICE, {0}};
              CUmemoryPool pool = nullptr, standard = nullptr;
              CUdeviceptr block = 0;
              CUmemPoolPtrExportData data{};
              int file = -1;
              if (start() || CU(cuMemPoolCreate)(&pool, &props)) return 1;
              constexpr auto type = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
              if (CU(cuDeviceGetDefaultMemPool)(&standard, 0)) return 2;
              if (CU(cuMemPoolExportToShareableHandle)(&file, standard, type, 0) != CUDA_ERROR_INVALID_VALUE)
                return 3;
              if (CU(cuMemPoolExportToShareableHandle)(&file, pool, type, 0)) return 4;
              if (CU(cuMemAllocFromPoolAsync)(&block, 4096, pool, nullptr) || fill(block, 3, 1)) return 5;
              if (CU(cuMemPoolExportPointer)(&data, block)) return 6;
              put_file(socket, file);
              put(socket, data);
              return take<int>(socket) == 1 && word(block) == 4 ? 0 : 7;
            },
            [](int socket) {
              const int file = take_file(socket);
              auto data = take<CUmemPoolPtrExportData>(socket);
              CUmemoryPool pool = nullptr;
              CUdeviceptr block = 0;
              if (start()) return 10;
              constexpr auto type = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
              if (CU(cuMemPoolImportFromShareableHandle)(&pool, as_handle(file), type, 0)) return 11;
              if (CU(cuMemAllocFromPoolAsync)(&block, 64, pool, nullptr) != CUDA_ERROR_INVALID_VALUE)
                return 12;
              if (CU(cuMemPoolImportPointer)(&block, pool, &data) || word(block) != 3) return 13;
              if (fill(block, 4, 1) || CU(cuMemFreeAsync)(block, nullptr)) return 14;
              if (CU(cuMemFree_v2)(block) != CUDA_ERROR_INVALID_VALUE) return 15;
              put(socket, 1);
              return 0;
            }) == 0);
}
