// Reaching another process's memory; see sharing.hpp.
#include "sharing.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <string>

#include "machine.hpp"

namespace sim {
namespace {

constexpr std::uint64_t magic = 0x74696465'706f6f6c;
constexpr std::uint64_t host_page = 4096;

std::uint64_t first_page(std::uint64_t address) { return address / host_page * host_page; }

}  // namespace

Place place_of(const Block& block) {
  const Device& device = *state().devices[static_cast<std::size_t>(block.device)];
  return {.magic = magic,
          .started = start_time(getpid()),
          .pid = getpid(),
          .file = device.file(),
          .offset = device.offset_of(block.base),
          .size = block.size,
          .block = block.id,
          .device = device.partition()};
}

bool owned_here(const Place& place) { return place.pid == getpid() && place.started == start_time(getpid()); }

CUresult map_place(const Place& place, std::uint64_t* base) {
  if (place.magic != magic || !place.size) return CUDA_ERROR_INVALID_HANDLE;
  if (!place.started || start_time(place.pid) != place.started) return CUDA_ERROR_MAP_FAILED;
  const std::string path = "/proc/" + std::to_string(place.pid) + "/fd/" + std::to_string(place.file);
  const int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0) return CUDA_ERROR_MAP_FAILED;
  const std::uint64_t start = first_page(place.offset), skip = place.offset - start;
  void* mapped = ::mmap(nullptr, place.size + skip, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file,
                        static_cast<off_t>(start));
  ::close(file);
  if (mapped == MAP_FAILED) return CUDA_ERROR_MAP_FAILED;
  *base = reinterpret_cast<std::uint64_t>(mapped) + skip;
  return CUDA_SUCCESS;
}

void unmap_place(std::uint64_t base, std::uint64_t size) {
  const std::uint64_t start = first_page(base);
  ::munmap(reinterpret_cast<void*>(start), base - start + size);
}

int device_of(const Place& place) {
  for (const auto& device : state().devices)
    if (device->partition() == place.device) return device->ordinal();
  return -1;
}

}  // namespace sim
