// Notices the driver in the process and redirects its symbol table to our wrappers.
#include "shim/hook/adoption.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include "shim/driver/driver.hpp"
#include "shim/hook/entries.hpp"
#include "shim/hook/loader.hpp"
#include "shim/hook/objects.hpp"
#include "shim/hook/process_lock.hpp"

namespace tidepool {
namespace {

constinit ProcessLock adoption_lock;
constinit std::atomic<bool> table_is_read_only{false};
constinit std::atomic<bool> kept{false};

bool redirect_hooks(const elf::Library& library, std::size_t copy) {
  bool all = true;
  for (std::size_t i = 0; i < kHookCount; ++i)
    if (ElfW(Sym)* symbol = elf::find_symbol(library, kHooks[i].symbol); symbol != nullptr)
      all = elf::redirect_symbol(library, symbol, wrapper_of(i, copy)) && all;
  return all;
}

// Requires: adoption_lock.
void adopt(std::size_t copy, const elf::Library& library) {
  Copy& taken = copies[copy];
  for (std::size_t i = 0; i < kHookCount; ++i)
    taken.entries[i].store(elf::address_of(library, kHooks[i].symbol), std::memory_order_release);
  if (copy == kDriver) driver.bind([&](const char* name) { return elf::address_of(library, name); });
  const bool redirected = is_switched_off() || redirect_hooks(library, copy);
  if (copy == kDriver) table_is_read_only.store(!redirected);
  taken.library = library;
  taken.adopted.store(true, std::memory_order_release);
}

bool is_adopted(const elf::Library& library) {
  for (const Copy& copy : copies)
    if (copy.adopted.load(std::memory_order_acquire) && copy.library.base == library.base) return true;
  return false;
}

}  // namespace

bool is_switched_off() {
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry)
    if (elf::equal(*entry, "TIDEPOOL_MODE=off")) return true;
  return false;
}

bool answers_are_swapped() { return table_is_read_only.load(std::memory_order_acquire); }

bool adopt_driver() {
  Copy& first = copies[kDriver];
  if (first.adopted.load(std::memory_order_acquire)) return true;
  elf::Library library;
  for_each_library([&](const elf::Library& candidate) {
    return is_driver(candidate) ? library = candidate, true : false;
  });
  if (library.symbols == nullptr) return false;
  const ProcessLockGuard hold(adoption_lock);
  if (!first.adopted.load(std::memory_order_acquire) && !is_adopted(library)) adopt(kDriver, library);
  return first.adopted.load(std::memory_order_acquire);
}

void keep_adopted_driver() {
  if (!copies[kDriver].adopted.load(std::memory_order_acquire) || kept.load(std::memory_order_acquire))
    return;
  real_dlopen()(copies[kDriver].library.path, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
  kept.store(true, std::memory_order_release);
}

bool adopt_and_keep_driver() {
  if (!adopt_driver()) return false;
  keep_adopted_driver();
  return true;
}

void* real_entry(Hook hook) {
  std::atomic<void*>& slot = copies[kDriver].entries[index_of(hook)];
  void* entry = slot.load(std::memory_order_acquire);
  if (entry == nullptr && adopt_driver()) entry = slot.load(std::memory_order_acquire);
  return entry;
}

}  // namespace tidepool

using namespace tidepool;

extern "C" {

// The audit companion's two calls, under the loader's lock. A libcuda of the program's own namespace is the
// driver if none was there before; any other gets wrappers that count.
[[gnu::visibility("default")]] void tidepool_object_opened(const link_map* map, long space) {
  elf::Library library;
  if (is_switched_off() || !elf::read_library(*map, library) || !is_driver(library) ||
      !elf::find_headers(library))
    return;
  const ProcessLockGuard hold(adoption_lock);
  if (is_adopted(library)) return;
  for (std::size_t copy = space == LM_ID_BASE ? kDriver : kDriver + 1; copy < kCopies; ++copy)
    if (!copies[copy].adopted.load(std::memory_order_acquire)) return adopt(copy, library);
}

// Unmapped: its addresses mean nothing from here on. A driver that is kept is never told of.
[[gnu::visibility("default")]] void tidepool_object_closed(const link_map* map) {
  const ProcessLockGuard hold(adoption_lock);
  for (Copy& copy : copies)
    if (copy.adopted.load(std::memory_order_acquire) && copy.library.base == map->l_addr) {
      copy.adopted.store(false, std::memory_order_release);
      for (std::atomic<void*>& entry : copy.entries) entry.store(nullptr, std::memory_order_release);
    }
}

}  // extern "C"
