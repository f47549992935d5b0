// Virtual memory: reserved addresses, physical pages, mappings and access rights.
//
// Reserved and mapped addresses have no access rights for the host either, until cuMemSetAccess:
// whoever touches them too early dies as a kernel on a real device would.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>

#include "entries.hpp"
#include "physical.hpp"
#include "pool.hpp"
#include "rules.hpp"
#include "state.hpp"

namespace sim {
namespace {

// base -> size
std::map<std::uint64_t, std::uint64_t>& reservations() {
  static auto* const instance = new std::map<std::uint64_t, std::uint64_t>;
  return *instance;
}

constexpr int nothing = PROT_NONE;
void* at(std::uint64_t address) { return reinterpret_cast<void*>(address); }

// Without references to it nor mappings of it, an allocation ends (cuda.h, cuMemRelease).
void end_if_unused(CUmemGenericAllocationHandle handle) {
  const Physical* physical = physical_memory().find(handle);
  if (physical->references || physical->mappings) return;
  Device& device = *state().devices[static_cast<std::size_t>(physical->device)];
  if (physical->own_file < 0) {
    device.release_pages(physical->offset, physical->size);
  } else {
    ::close(physical->own_file);
    if (!physical->imported) device.discharge(physical->size);
  }
  physical_memory().remove(handle);
}

CUresult check(const CUmemAllocationProp* prop) {
  if (!prop || prop->type != CU_MEM_ALLOCATION_TYPE_PINNED) return CUDA_ERROR_INVALID_VALUE;
  if (prop->location.type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_NOT_SUPPORTED;
  // Fabric and Windows handles: the device's attributes say that it has none.
  if (prop->requestedHandleTypes & ~CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_NOT_SUPPORTED;
  return valid_device(prop->location.id) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

bool inside_reservation(std::uint64_t base, std::uint64_t size) {
  auto found = reservations().upper_bound(base);
  if (found == reservations().begin()) return false;
  --found;
  return base - found->first < found->second && size <= found->second - (base - found->first);
}

bool any_mapped(std::uint64_t base, std::uint64_t size) {
  if (state().find_block(base)) return true;
  const auto next = state().blocks.lower_bound(base);
  return next != state().blocks.end() && next->first < base + size;
}

// The mappings that make up [base, base + size) exactly; empty if they do not.
std::vector<Blocks::iterator> whole_mappings(std::uint64_t base, std::uint64_t size) {
  std::vector<Blocks::iterator> found;
  std::uint64_t reached = base;
  while (reached < base + size) {
    const auto next = state().blocks.find(reached);
    if (next == state().blocks.end() || next->second.kind != Block::Kind::mapped) return {};
    found.push_back(next);
    reached += next->second.size;
  }
  if (found.size() > 1 && !rules().neighbours_at_once) return {};
  return reached == base + size ? found : std::vector<Blocks::iterator>{};
}

// What may be exported lies in a file of its own, whose name says what it is to whoever imports it.
CUresult take_pages(std::uint64_t size, const CUmemAllocationProp& prop, Physical* physical) {
  Device& device = *state().devices[static_cast<std::size_t>(physical->device)];
  if (!prop.requestedHandleTypes) {
    physical->offset = device.create_pages(size);
    if (!physical->offset && rules().pools_give_way && reclaim_pools(physical->device))
      physical->offset = device.create_pages(size);
    return physical->offset ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
  }
  if (!device.charge(size)) return CUDA_ERROR_OUT_OF_MEMORY;
  char name[64];
  std::snprintf(name, sizeof name, "sim-memory-%d-%lu", device.partition(), size);
  physical->own_file = ::memfd_create(name, MFD_CLOEXEC);
  if (physical->own_file >= 0 && !::ftruncate(physical->own_file, static_cast<off_t>(size)))
    return CUDA_SUCCESS;
  if (physical->own_file >= 0) ::close(physical->own_file);
  device.discharge(size);
  return CUDA_ERROR_OUT_OF_MEMORY;
}

}  // namespace

Table<Physical, CUmemGenericAllocationHandle>& physical_memory() {
  static auto* const table = new Table<Physical, CUmemGenericAllocationHandle>;
  return *table;
}

Physical* find_referenced(CUmemGenericAllocationHandle handle) {
  Physical* physical = physical_memory().find(handle);
  return physical && physical->references ? physical : nullptr;
}

int file_of(const Physical& physical) {
  if (physical.own_file >= 0) return physical.own_file;
  return state().devices[static_cast<std::size_t>(physical.device)]->file();
}

CUresult SIM_ENTRY(cuMemGetAllocationGranularity)(size_t* granularity, const CUmemAllocationProp* prop,
                                                  CUmemAllocationGranularity_flags option) {
  if (!granularity ||
      (option != CU_MEM_ALLOC_GRANULARITY_MINIMUM && option != CU_MEM_ALLOC_GRANULARITY_RECOMMENDED))
    return CUDA_ERROR_INVALID_VALUE;
  const Lock lock;
  SIM_TRY(check(prop));
  *granularity = page;
  return CUDA_SUCCESS;
}

CUresult SIM_ENTRY(cuMemAddressReserve)(CUdeviceptr* ptr, size_t size, size_t alignment, CUdeviceptr addr,
                                        unsigned long long flags) {
  constexpr std::uint64_t host_page = 4096;
  if (!ptr || !size || size % host_page || addr % host_page || flags) return CUDA_ERROR_INVALID_VALUE;
  if (alignment & (alignment - 1)) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock;
  const std::uint64_t unit = alignment > page ? alignment : page;
  void* base = MAP_FAILED;
  constexpr int how = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  if (addr && addr % unit == 0) base = ::mmap(at(addr), size, nothing, how | MAP_FIXED_NOREPLACE, -1, 0);
  if (base == MAP_FAILED) {  // the address was only a hint
    if (size > (1ull << 46) || unit > (1ull << 46)) return CUDA_ERROR_OUT_OF_MEMORY;
    base = ::mmap(nullptr, size + unit, nothing, how, -1, 0);
    if (base == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
    const auto start = reinterpret_cast<std::uint64_t>(base);
    const std::uint64_t aligned = round_up(start, unit);
    if (aligned > start) ::munmap(base, aligned - start);
    const std::uint64_t end = round_up(aligned + size, host_page);
    if (end < start + size + unit) ::munmap(at(end), start + size + unit - end);
    base = at(aligned);
  }
  *ptr = reinterpret_cast<CUdeviceptr>(base);
  reservations().emplace(*ptr, size);
  return CUDA_SUCCESS;
}

CUresult SIM_ENTRY(cuMemAddressFree)(CUdeviceptr ptr, size_t size) {
  const Lock lock;
  const auto found = reservations().find(ptr);
  if (found == reservations().end() || found->second != size) return CUDA_ERROR_INVALID_VALUE;
  if (any_mapped(ptr, size)) return CUDA_ERROR_INVALID_VALUE;
  ::munmap(at(ptr), size);
  reservations().erase(found);
  return CUDA_SUCCESS;
}

CUresult SIM_ENTRY(cuMemCreate)(CUmemGenericAllocationHandle* handle, size_t size,
                                const CUmemAllocationProp* prop, unsigned long long flags) {
  if (!handle || !size || size % page || flags) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock;
  SIM_TRY(check(prop));
  auto physical = std::make_unique<Physical>();
  physical->device = prop->location.id;
  SIM_TRY(take_pages(size, *prop, physical.get()));
  physical->size = size;
  physical->props = *prop;
  *handle = physical_memory().add(std::move(physical));
  return CUDA_SUCCESS;
}

CUresult SIM_ENTRY(cuMemRelease)(CUmemGenericAllocationHandle handle) {
  const Lock lock;
  Physical* physical = find_referenced(handle);
  if (!physical) return CUDA_ERROR_INVALID_VALUE;
  --physical->references;
  end_if_unused(handle);
  return CUDA_SUCCESS;
}

CUresult SIM_ENTRY(cuMemRetainAllocationHandle)(CUmemGenericAllocationHandle* handle, void* addr) {
  if (!handle) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock;
  const Block* block = state().find_block(reinterpret_cast<std::uint64_t>(addr));
  if (!block || block->kind != Block::Kind::mapped) return CUDA_ERROR_INVALID_VALUE;
  ++physical_memory().find(block->handle)->references;
  *handle = block->handle;
  return CUDA_SUCCESS;
}

CUresult SIM_ENTRY(cuMemGetAllocationPropertiesFromHandle)(CUmemAllocationProp* prop,
                                                           CUmemGenericAllocationHandle handle) {
  if (!prop) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock;
  const Physical* physical = find_referenced(handle);
  if (!physical) return CUDA_ERROR_INVALID_VALUE;
  *prop = physical->props;
  return CUDA_SUCCESS;
}

CUresult SIM_ENTRY(cuMemMap)(CUdeviceptr ptr, size_t size, size_t offset, CUmemGenericAllocationHandle handle,
                             unsigned long long flags) {
  if (!ptr || !size || ptr % page || size % page || offset || flags) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock;
  Physical* physical = find_referenced(handle);
  if (!physical || size > physical->size) return CUDA_ERROR_INVALID_VALUE;
  if (!inside_reservation(ptr, size) || any_mapped(ptr, size)) return CUDA_ERROR_INVALID_VALUE;
  const int file = file_of(*physical);
  if (::mmap(at(ptr), size, nothing, MAP_SHARED | MAP_FIXED | MAP_NORESERVE, file,
             static_cast<off_t>(physical->offset)) == MAP_FAILED)
    return CUDA_ERROR_OUT_OF_MEMORY;
  ++physical->mappings;
  state().add_block({.kind = Block::Kind::mapped,
                     .base = ptr,
                     .size = size,
                     .device = physical->device,
                     .handle = handle,
                     .accessible = false,
                     .handle_types = static_cast<unsigned long long>(physical->props.requestedHandleTypes)});
  return CUDA_SUCCESS;
}

CUresult SIM_ENTRY(cuMemUnmap)(CUdeviceptr ptr, size_t size) {
  if (!ptr || !size) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock;
  const auto mappings = whole_mappings(ptr, size);
  if (mappings.empty()) return CUDA_ERROR_INVALID_VALUE;
  for (const auto mapping : mappings) check_free("cuMemUnmap", mapping->second);
  constexpr int how = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
  if (::mmap(at(ptr), size, nothing, how, -1, 0) == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
  for (const auto mapping : mappings) {
    const CUmemGenericAllocationHandle handle = mapping->second.handle;
    state().blocks.erase(mapping);
    --physical_memory().find(handle)->mappings;
    end_if_unused(handle);
  }
  return CUDA_SUCCESS;
}

CUresult SIM_ENTRY(cuMemSetAccess)(CUdeviceptr ptr, size_t size, const CUmemAccessDesc* desc, size_t count) {
  if (!ptr || !size || !desc || !count) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock;
  const auto mappings = whole_mappings(ptr, size);
  if (mappings.empty()) return CUDA_ERROR_INVALID_VALUE;
  for (std::size_t i = 0; i < count; ++i) {
    if (desc[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_NOT_SUPPORTED;
    if (!valid_device(desc[i].location.id)) return CUDA_ERROR_INVALID_DEVICE;
  }
  for (const auto mapping : mappings) {
    Block& block = mapping->second;
    for (std::size_t i = 0; i < count; ++i) {
      const unsigned bit = 1u << desc[i].location.id;
      block.readers =
          desc[i].flags & CU_MEM_ACCESS_FLAGS_PROT_READ ? block.readers | bit : block.readers & ~bit;
      block.writers =
          desc[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE ? block.writers | bit : block.writers & ~bit;
    }
    block.accessible = block.readers;
    const int rights = block.writers ? PROT_READ | PROT_WRITE : block.readers ? PROT_READ : nothing;
    if (::mprotect(at(block.base), block.size, rights)) return CUDA_ERROR_OUT_OF_MEMORY;
  }
  return CUDA_SUCCESS;
}

CUresult SIM_ENTRY(cuMemGetAccess)(unsigned long long* flags, const CUmemLocation* location,
                                   CUdeviceptr ptr) {
  if (!flags || !location) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock;
  if (location->type != CU_MEM_LOCATION_TYPE_DEVICE || !valid_device(location->id))
    return CUDA_ERROR_INVALID_DEVICE;
  const Block* block = state().find_block(ptr);
  if (!block || block->kind != Block::Kind::mapped) return CUDA_ERROR_INVALID_VALUE;
  const unsigned bit = 1u << location->id;
  *flags = block->writers & bit   ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
           : block->readers & bit ? CU_MEM_ACCESS_FLAGS_PROT_READ
                                  : CU_MEM_ACCESS_FLAGS_PROT_NONE;
  return CUDA_SUCCESS;
}

}  // namespace sim
