// Exported wrappers: starting the driver, and its own look-up of entries.
#include "shim/hook/entries.hpp"
#include "shim/hook/passage.hpp"

using namespace tidepool;

namespace {

// The driver's answer, with a hooked entry replaced by our wrapper for that very symbol: which version
// and which stream flavour a program gets stays the driver's choice.
void* replace_answer(const char* base, void* answer, int cuda_version, cuuint64_t flags) {
  if (answer == nullptr) return nullptr;
  if (void* wrapper = wrapper_for_address(answer); wrapper != nullptr) return wrapper;
  // Exported, and not hooked. Or newer than our table: its ABI is not known here.
  if (driver_exports(answer)) return answer;
  const int hook = cuda_version > CUDA_VERSION
                       ? -1
                       : hook_for_base_name(base, cuda_version,
                                            (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0);
  if (hook < 0 || wrapper_of(static_cast<std::size_t>(hook)) == answer) return answer;
  // A driver that answers with addresses it does not export: the version column says which ABI it is.
  real_entries[hook].store(answer, std::memory_order_release);
  return wrapper_of(static_cast<std::size_t>(hook));
}

}  // namespace

#pragma GCC visibility push(default)

CUresult cuInit(unsigned int Flags) {
  const CUresult result = forward<Hook::cuInit>(Flags);
  if (result == CUDA_SUCCESS) Runtime::driver_initialised();
  return result;
}

CUresult cuGetProcAddress(const char* symbol, void** pfn, int cudaVersion, cuuint64_t flags) {
  const CUresult result = forward<Hook::cuGetProcAddress>(symbol, pfn, cudaVersion, flags);
  if (result == CUDA_SUCCESS && pfn != nullptr) *pfn = replace_answer(symbol, *pfn, cudaVersion, flags);
  return result;
}
CUresult cuGetProcAddress_v2(const char* symbol, void** pfn, int cudaVersion, cuuint64_t flags,
                             CUdriverProcAddressQueryResult* symbolStatus) {
  const CUresult result = forward<Hook::cuGetProcAddress_v2>(symbol, pfn, cudaVersion, flags, symbolStatus);
  if (result == CUDA_SUCCESS && pfn != nullptr) *pfn = replace_answer(symbol, *pfn, cudaVersion, flags);
  return result;
}

#pragma GCC visibility pop
