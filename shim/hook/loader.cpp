// The C++ side of platform/dl_*.S: what is done before a call of the loader's is handed on to it.
//
// No libc but what elf.hpp allows and the loader's own dlopen, no lock but a ProcessLock, no allocation: a
// sanitizer's runtime or an allocator may be looking its functions up.
#include "shim/hook/loader.hpp"

#include <dlfcn.h>

#include "shim/hook/adoption.hpp"
#include "shim/hook/entries.hpp"
#include "shim/hook/needs.hpp"
#include "shim/hook/objects.hpp"
#include "shim/hook/process_lock.hpp"

extern "C" {
// Shared with platform/*.S.
[[gnu::visibility("hidden")]] constinit void* tidepool_real_dlopen = nullptr;
[[gnu::visibility("hidden")]] constinit void* tidepool_real_dlmopen = nullptr;
[[gnu::visibility("hidden")]] constinit void* tidepool_real_dlclose = nullptr;
[[gnu::visibility("hidden")]] constinit void* tidepool_real_dlsym = nullptr;
[[gnu::visibility("hidden")]] constinit void* tidepool_real_dlvsym = nullptr;
// 1: nothing more to do when a cu... name is looked up, the driver's table says it all.
[[gnu::visibility("hidden")]] constinit unsigned char tidepool_lookups_settled = 0;
// 1: nothing more to do when a dl... name is looked up, libc's table leads to ours.
[[gnu::visibility("hidden")]] constinit unsigned char tidepool_loader_redirected = 0;

[[gnu::visibility("hidden")]] void tidepool_find_loader();
[[gnu::visibility("hidden")]] void* tidepool_dlopen(const char* name, int flags);
[[gnu::visibility("hidden")]] void* tidepool_dlmopen(long space, const char* name, int flags);
[[gnu::visibility("hidden")]] int tidepool_dlclose(void* handle);
[[gnu::visibility("hidden")]] void* tidepool_dlsym(void* handle, const char* name);
[[gnu::visibility("hidden")]] void* tidepool_dlvsym(void* handle, const char* name, const char* version);
}

namespace tidepool {
namespace {

struct LoaderEntry {
  const char* name;
  void** real;
  const void* wrapper;
};

const LoaderEntry kLoaderEntries[] = {
    {"dlopen", &tidepool_real_dlopen, reinterpret_cast<const void*>(&tidepool_dlopen)},
    {"dlmopen", &tidepool_real_dlmopen, reinterpret_cast<const void*>(&tidepool_dlmopen)},
    {"dlclose", &tidepool_real_dlclose, reinterpret_cast<const void*>(&tidepool_dlclose)},
    {"dlsym", &tidepool_real_dlsym, reinterpret_cast<const void*>(&tidepool_dlsym)},
    {"dlvsym", &tidepool_real_dlvsym, reinterpret_cast<const void*>(&tidepool_dlvsym)},
};

// In the loader's own list: an exported dlvsym of ours would find itself (measured: it recursed), and
// ThreadSanitizer looks its functions up by dlsym before its dl_iterate_phdr works (measured: it crashed).
// The list only grows at its end, and libc stands near the head of it.
template <typename Visit>
void for_each_loader_library(const Visit& visit) {
  const r_debug* list = loader_list();
  for (const link_map* map = list == nullptr ? nullptr : list->r_map; map != nullptr; map = map->l_next) {
    elf::Library library;
    if (elf::read_library(*map, library) && is_loader_library(library)) visit(library);
  }
}

// Whoever binds past our exports to the loader's own entries (an object loaded with RTLD_DEEPBIND, a
// program that looks dlopen up in libc) is led to ours from here on.
void redirect_loader() {
  static constinit ProcessLock lock;
  if (__atomic_load_n(&tidepool_loader_redirected, __ATOMIC_ACQUIRE) != 0) return;
  const ProcessLockGuard hold(lock);
  if (tidepool_loader_redirected != 0) return;
  tidepool_find_loader();
  if (!is_switched_off())
    for_each_loader_library([](elf::Library& library) {
      if (!elf::find_headers(library)) return;
      for (const LoaderEntry& entry : kLoaderEntries)
        for (ElfW(Sym)* symbol = nullptr;
             (symbol = elf::find_symbol(library, entry.name, symbol)) != nullptr;)
          elf::redirect_symbol(library, symbol, entry.wrapper);
    });
  __atomic_store_n(&tidepool_loader_redirected, 1, __ATOMIC_RELEASE);
}

// An object that is linked to the driver and loaded with RTLD_DEEPBIND is bound to it within one dlopen,
// its constructor may call it before that returns, and no look-up of ours comes between. So a driver that
// such an object will bring is loaded and adopted just before. Where the object cannot be read, it might.
// The alternative, a sweep over its pointers afterwards, is too late for the constructor.
void adopt_what_comes_with(const char* name, int flags) {
  static constinit std::atomic<bool> absent{false};
  if ((flags & RTLD_NOLOAD) != 0 || adopt_and_keep_driver() || absent || !may_need_driver(name)) return;
  // Two threads may both come here; neither goes on before the driver is adopted.
  if (real_dlopen()("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL | RTLD_NODELETE) == nullptr) absent = true;
  adopt_and_keep_driver();
}

bool prepare_lookup() {
  if (!adopt_and_keep_driver()) return false;
  if (!answers_are_swapped()) __atomic_store_n(&tidepool_lookups_settled, 1, __ATOMIC_RELEASE);
  return true;
}

// Handles by which the program may find our own exports.
bool means_all_objects(void* handle) {
  return handle == RTLD_DEFAULT || handle == RTLD_NEXT || handle == real_dlopen()(nullptr, RTLD_LAZY);
}

void* libc_handle() { return real_dlopen()("libc.so.6", RTLD_LAZY | RTLD_NOLOAD); }

}  // namespace

OpenFunction real_dlopen() {
  if (tidepool_real_dlopen == nullptr) tidepool_find_loader();
  return reinterpret_cast<OpenFunction>(tidepool_real_dlopen);
}

void* libc_symbol(const char* name) {
  void* found = nullptr;
  for_each_loader_library([&](const elf::Library& library) {
    if (found == nullptr) found = elf::address_of(library, name);
  });
  return found;
}

}  // namespace tidepool

using namespace tidepool;

extern "C" {

struct LookupAnswer {
  void* handle;  // where to look
  void* answer;  // not null: the result, do not look
};

[[gnu::visibility("hidden")]] void tidepool_find_loader() {
  for_each_loader_library([](const elf::Library& library) {
    for (const LoaderEntry& entry : kLoaderEntries)
      if (void* found = elf::address_of(library, entry.name); found != nullptr && *entry.real == nullptr)
        *entry.real = found;
  });
}

[[gnu::visibility("hidden")]] LookupAnswer tidepool_before_lookup(void* handle, const char* name) {
  if (name[0] == 'd') return redirect_loader(), LookupAnswer{handle, nullptr};
  if (tidepool_real_dlsym == nullptr) tidepool_find_loader();
  const bool known = prepare_lookup();
  // Without a driver in the process our own exports must not pretend that there is one.
  if (!known && means_all_objects(handle) && is_hook_name(name)) return {libc_handle(), nullptr};
  if (!known || !answers_are_swapped() || handle == RTLD_DEFAULT || handle == RTLD_NEXT)
    return {handle, nullptr};
  using Lookup = void* (*)(void*, const char*);
  return {handle, wrapper_for_address(reinterpret_cast<Lookup>(tidepool_real_dlsym)(handle, name))};
}

[[gnu::visibility("hidden")]] LookupAnswer tidepool_before_versioned_lookup(void* handle, const char* name) {
  if (name[0] == 'd') return redirect_loader(), LookupAnswer{handle, nullptr};
  if (!prepare_lookup() && means_all_objects(handle) && is_hook_name(name)) return {libc_handle(), nullptr};
  return {handle, nullptr};
}

[[gnu::visibility("hidden")]] void tidepool_before_deepbind(const char* name, int flags) {
  redirect_loader();
  if (!is_switched_off()) adopt_what_comes_with(name, flags);
}

// In a namespace of its own an object binds to that namespace's libraries: only the audit companion sees it.
[[gnu::visibility("hidden")]] void tidepool_before_deepbind_in(long space, const char* name, int flags) {
  if (space == LM_ID_BASE) tidepool_before_deepbind(name, flags);
}

[[gnu::visibility("hidden")]] void tidepool_before_close() { keep_adopted_driver(); }

}  // extern "C"
