// Notices the driver in the process and redirects its symbol table to our wrappers.
#include "shim/hook/adoption.hpp"

#include <dlfcn.h>
#include <sched.h>
#include <unistd.h>

#include "shim/driver/driver.hpp"
#include "shim/hook/elf.hpp"
#include "shim/hook/entries.hpp"

extern "C" {
// Shared with platform/*.S.
[[gnu::visibility("hidden")]] constinit void* tidepool_real_dlopen = nullptr;
[[gnu::visibility("hidden")]] constinit void* tidepool_real_dlmopen = nullptr;
[[gnu::visibility("hidden")]] constinit void* tidepool_real_dlsym = nullptr;
[[gnu::visibility("hidden")]] constinit void* tidepool_real_dlvsym = nullptr;
// 1: nothing more to do at a lookup, the driver's table says it all.
[[gnu::visibility("hidden")]] constinit unsigned char tidepool_lookups_settled = 0;

[[gnu::visibility("hidden")]] void tidepool_find_loader();
[[gnu::visibility("hidden")]] void* tidepool_dlopen(const char* name, int flags);
[[gnu::visibility("hidden")]] void* tidepool_dlmopen(long space, const char* name, int flags);
[[gnu::visibility("hidden")]] void* tidepool_dlsym(void* handle, const char* name);
[[gnu::visibility("hidden")]] void* tidepool_dlvsym(void* handle, const char* name, const char* version);
}

namespace tidepool {
namespace {

constinit std::atomic<bool> adopted{false};
constinit std::atomic<bool> answers_are_swapped{false};
constinit elf::Library adopted_library;

// Owned by a process id: a child forked while another thread held it must not wait for a ghost.
// The loader's lock is never waited for while this is held: a constructor that runs under the loader's
// lock may want this one.
class AdoptionLock {
 public:
  AdoptionLock() {
    const pid_t self = getpid();
    for (pid_t holder = 0; !holder_.compare_exchange_weak(holder, self, std::memory_order_acquire);) {
      if (holder == self) {
        sched_yield();
        holder = 0;
      }
    }
  }
  ~AdoptionLock() { holder_.store(0, std::memory_order_release); }
  AdoptionLock(const AdoptionLock&) = delete;
  AdoptionLock& operator=(const AdoptionLock&) = delete;

 private:
  static constinit std::atomic<pid_t> holder_;
};
constinit std::atomic<pid_t> AdoptionLock::holder_{0};

template <typename Visit>
void for_each_library(Visit visit) {
  const auto step = [](dl_phdr_info* info, std::size_t, void* data) {
    elf::Library library;
    return elf::read_library(*info, library) && (*static_cast<Visit*>(data))(library) ? 1 : 0;
  };
  dl_iterate_phdr(step, &visit);
}

const char* file_name(const char* path) {
  const char* name = path;
  for (; *path != '\0'; ++path)
    if (*path == '/') name = path + 1;
  return name;
}

bool is_named(const elf::Library& library, const char* prefix) {
  const char* name = library.soname != nullptr ? library.soname : file_name(library.path);
  return elf::starts_with(name, prefix);
}

bool is_driver(const elf::Library& library) {
  return is_named(library, "libcuda.so") && elf::find_symbol(library, "cuInit") != nullptr;
}

bool switched_off() {
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry)
    if (elf::equal(*entry, "TIDEPOOL_MODE=off")) return true;
  return false;
}

bool redirect_hooks(const elf::Library& library) {
  bool all = true;
  for (std::size_t i = 0; i < kHookCount; ++i)
    if (ElfW(Sym)* symbol = elf::find_symbol(library, kHooks[i].symbol); symbol != nullptr)
      all = elf::redirect_symbol(library, symbol, wrapper_of(i)) && all;
  return all;
}

// A program may close and load the driver again: saved addresses would go stale. Only where a look-up
// asks for the loader's lock anyway: a wrapper may be called by a thread that a library's constructor
// waits for, and that constructor holds it.
void keep_loaded(const elf::Library& library) {
  if (tidepool_real_dlopen == nullptr) tidepool_find_loader();
  using Open = void* (*)(const char*, int);
  reinterpret_cast<Open>(tidepool_real_dlopen)(library.path, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
}

bool adopt_under_lock() {
  elf::Library library;
  const auto take = [&](const elf::Library& candidate) {
    return is_driver(candidate) ? library = candidate, true : false;
  };
  for_each_library(take);
  if (library.symbols == nullptr) return false;
  for (std::size_t i = 0; i < kHookCount; ++i)
    real_entries[i].store(elf::address_of(library, kHooks[i].symbol), std::memory_order_release);
  driver.bind([&](const char* name) { return elf::address_of(library, name); });
  if (!switched_off()) answers_are_swapped.store(!redirect_hooks(library));
  adopted_library = library;
  adopted.store(true, std::memory_order_release);
  return true;
}

bool adopt_for_lookup() {
  if (!adopt_driver()) return false;
  static constinit std::atomic<bool> kept{false};
  if (!kept.exchange(true)) keep_loaded(adopted_library);
  if (!answers_are_swapped) __atomic_store_n(&tidepool_lookups_settled, 1, __ATOMIC_RELEASE);
  return true;
}

void* libc_handle() {
  if (tidepool_real_dlopen == nullptr) tidepool_find_loader();
  using Open = void* (*)(const char*, int);
  return reinterpret_cast<Open>(tidepool_real_dlopen)("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
}

}  // namespace

bool adopt_driver() {
  if (adopted.load(std::memory_order_acquire)) return true;
  const AdoptionLock hold;
  return adopted.load(std::memory_order_acquire) || adopt_under_lock();
}

void* real_entry(Hook hook) {
  void* entry = real_entries[index_of(hook)].load(std::memory_order_acquire);
  if (entry == nullptr && adopt_driver()) entry = real_entries[index_of(hook)].load(std::memory_order_acquire);
  return entry;
}

bool driver_exports(const void* address) {
  return adopted.load(std::memory_order_acquire) && elf::exports(adopted_library, address);
}

int count_unadopted_drivers() {
  int count = 0;
  for_each_library([&](const elf::Library& library) {
    count += is_driver(library) && library.base != adopted_library.base ? 1 : 0;
    return false;
  });
  return count;
}

}  // namespace tidepool

using namespace tidepool;

extern "C" {

struct LookupAnswer {
  void* handle;  // where to look
  void* answer;  // not null: the result, do not look
};

// Walked by hand, in the loader's own list: an exported dlvsym of ours would find itself (measured: it
// recursed), and ThreadSanitizer looks its functions up by dlsym before its dl_iterate_phdr works
// (measured: it crashed). The list only grows at its end, and libc stands near the head of it.
[[gnu::visibility("hidden")]] void tidepool_find_loader() {
  for (const link_map* map = _r_debug.r_map; map != nullptr; map = map->l_next) {
    elf::Library library;
    if (!elf::read_library(*map, library)) continue;
    if (!is_named(library, "libc.so.") && !is_named(library, "libdl.so.")) continue;
    const auto take = [&](void*& slot, const char* name) {
      if (void* found = elf::address_of(library, name); found != nullptr && slot == nullptr) slot = found;
    };
    take(tidepool_real_dlopen, "dlopen");
    take(tidepool_real_dlmopen, "dlmopen");
    take(tidepool_real_dlsym, "dlsym");
    take(tidepool_real_dlvsym, "dlvsym");
  }
}

[[gnu::visibility("hidden")]] LookupAnswer tidepool_before_lookup(void* handle, const char* name) {
  if (tidepool_real_dlsym == nullptr) tidepool_find_loader();
  const bool known = adopt_for_lookup();
  // Without a driver in the process our own exports must not pretend that there is one.
  if (!known && handle == RTLD_DEFAULT && is_hook_name(name)) return {libc_handle(), nullptr};
  if (!known || !answers_are_swapped || handle == RTLD_DEFAULT || handle == RTLD_NEXT)
    return {handle, nullptr};
  using Lookup = void* (*)(void*, const char*);
  return {handle, wrapper_for_address(reinterpret_cast<Lookup>(tidepool_real_dlsym)(handle, name))};
}

[[gnu::visibility("hidden")]] LookupAnswer tidepool_before_versioned_lookup(void* handle, const char* name) {
  if (!adopt_for_lookup() && handle == RTLD_DEFAULT && is_hook_name(name)) return {libc_handle(), nullptr};
  return {handle, nullptr};
}

// An object loaded with RTLD_DEEPBIND binds past us to the loader's own dlsym: from here on that one
// leads to ours as well.
[[gnu::visibility("hidden")]] void tidepool_before_deepbind() {
  static constinit std::atomic<bool> done{false};
  if (done.exchange(true) || switched_off()) return;
  tidepool_find_loader();
  adopt_driver();
  for_each_library([](const elf::Library& library) {
    if (!is_named(library, "libc.so.") && !is_named(library, "libdl.so.")) return false;
    const auto redirect = [&](const char* name, auto* target) {
      for (ElfW(Sym)* symbol = nullptr; (symbol = elf::find_symbol(library, name, symbol)) != nullptr;)
        elf::redirect_symbol(library, symbol, reinterpret_cast<const void*>(target));
    };
    redirect("dlopen", &tidepool_dlopen);
    redirect("dlmopen", &tidepool_dlmopen);
    redirect("dlsym", &tidepool_dlsym);
    redirect("dlvsym", &tidepool_dlvsym);
    return false;
  });
}

}  // extern "C"
