// cuGetProcAddress: names, versions and kinds of stream to the exported addresses.
//
// It returns exactly what dlsym would (measured on 535.309.01: all 1,483 rows), so that whoever
// knows an exported address knows the entry behind a resolved pointer.
#include <cstring>
#include <string>
#include <unordered_map>
#include <vector>

#include "entries.hpp"
#include "faults.hpp"
#include "resolution.hpp"
#include "state.hpp"

namespace sim {
namespace {

struct Row {
  const char* base;
  int version;
  bool per_thread;
  const char* symbol;
  void* address;
};

// Typed, so that the compiler has seen every entry; the exports are C functions of these names.
#define address(name) reinterpret_cast<void*>(&::name)
const Row rows[] = {
#include "resolution.inc"
};
#undef address

// Row ranges by base name: the table is sorted by name, then by kind of stream, then by version.
const std::unordered_map<std::string, std::vector<const Row*>>& index() {
  static const auto* const result = [] {
    auto* map = new std::unordered_map<std::string, std::vector<const Row*>>;
    for (const Row& row : rows)
      if (!hidden(row.symbol, row.version)) (*map)[row.base].push_back(&row);
    return map;
  }();
  return *result;
}

CUresult resolve(const char* symbol, void** function, int version, cuuint64_t flags,
                 CUdriverProcAddressQueryResult* status) {
  constexpr cuuint64_t both =
      CU_GET_PROC_ADDRESS_LEGACY_STREAM | CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
  if (!symbol || !function || (flags & ~both) || flags == both) return CUDA_ERROR_INVALID_VALUE;
  *function = nullptr;
  const auto found = index().find(symbol);
  if (found == index().end()) {
    if (status) *status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    return CUDA_SUCCESS;
  }
  // Measured: an entry that has per-thread twins has only those under the flag, even where the
  // version is older than them; an entry without twins is the same under both flags.
  bool twins = false;
  for (const Row* row : found->second) twins |= row->per_thread;
  const bool wanted = twins && (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM);
  const Row* best = nullptr;
  for (const Row* row : found->second)
    if (row->per_thread == wanted && row->version <= version && (!best || row->version > best->version))
      best = row;
  if (best) *function = best->address;
  if (status) *status = best ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
  return CUDA_SUCCESS;
}

}  // namespace

int version_of(const char* symbol) {
  for (const Row& row : rows)
    if (!std::strcmp(row.symbol, symbol)) return row.version;
  return 0;
}

CUresult SIM_ENTRY(cuGetProcAddress_v2)(const char* symbol, void** pfn, int cudaVersion, cuuint64_t flags,
                                        CUdriverProcAddressQueryResult* symbolStatus) {
  return resolve(symbol, pfn, cudaVersion, flags, symbolStatus);
}

// The first ABI has no status, and says NOT_FOUND by its result (cuda.h 11.3).
CUresult SIM_ENTRY(cuGetProcAddress)(const char* symbol, void** pfn, int cudaVersion, cuuint64_t flags) {
  SIM_TRY(resolve(symbol, pfn, cudaVersion, flags, nullptr));
  return *pfn ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

}  // namespace sim
