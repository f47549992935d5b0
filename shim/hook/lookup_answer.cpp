// What a program gets when it asks the driver itself for an entry.
#include "shim/hook/lookup_answer.hpp"

namespace tidepool {

void* replace_answer(std::size_t copy, const char* base, void* answer, int cuda_version, cuuint64_t flags) {
  if (answer == nullptr) return nullptr;
  if (void* wrapper = wrapper_for_address(answer, copy); wrapper != nullptr) return wrapper;
  // Exported, and not hooked. Or newer than our table: its ABI is not known here.
  Copy& driver = copies[copy];
  if (driver.adopted.load(std::memory_order_acquire) && elf::exports(driver.library, answer)) return answer;
  const int hook = cuda_version > CUDA_VERSION
                       ? -1
                       : hook_for_base_name(base, cuda_version,
                                            (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0);
  if (hook < 0 || wrapper_of(static_cast<std::size_t>(hook), copy) == answer) return answer;
  // A driver that answers with addresses it does not export: the version column says which ABI it is.
  driver.entries[hook].store(answer, std::memory_order_release);
  return wrapper_of(static_cast<std::size_t>(hook), copy);
}

}  // namespace tidepool
