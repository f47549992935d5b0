// The objects that the loader has in this process, and which of them are a driver.
//
// Compiled without sanitizers, see elf.hpp. A visitor runs under a lock of the loader's: it takes none and
// calls nothing of the loader's.
#pragma once

#include "shim/hook/elf.hpp"

// The loader's list for debuggers: glibc's by its first name, musl's by the second. Weak, since each lacks
// the other's.
#pragma weak _r_debug
extern "C" [[gnu::weak]] r_debug* _dl_debug_addr;

namespace tidepool {

inline const r_debug* loader_list() {
  if (&_r_debug != nullptr) return &_r_debug;
  return &_dl_debug_addr != nullptr ? _dl_debug_addr : nullptr;
}

// Stops when `visit(library)` gives true. The program's own namespace.
template <typename Visit>
void for_each_library(Visit visit) {
  const auto step = [](dl_phdr_info* info, std::size_t, void* data) {
    elf::Library library;
    return elf::read_library(*info, library) && (*static_cast<Visit*>(data))(library) ? 1 : 0;
  };
  dl_iterate_phdr(step, &visit);
}

inline bool is_named(const elf::Library& library, const char* prefix) {
  return elf::starts_with(elf::name_of(library), prefix);
}

// Its DT_SONAME decides: taichi opens libcuda.so.
inline bool is_driver(const elf::Library& library) {
  return is_named(library, "libcuda.so") && elf::find_symbol(library, "cuInit") != nullptr;
}

// musl's libc is its loader, and has no other name than its file's.
inline bool is_loader_library(const elf::Library& library) {
  return is_named(library, "libc.so") || is_named(library, "libdl.so.") || is_named(library, "ld-musl-");
}

}  // namespace tidepool
