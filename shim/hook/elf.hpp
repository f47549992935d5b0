// Reads and changes the symbol table of a library that is mapped in this process.
//
// Compiled without sanitizers and free of libc calls but mprotect and sysconf: it runs inside dlsym, at
// times when a sanitizer's interceptors are not ready (measured: a strcmp in a dlsym wrapper crashed under
// ASan).
#pragma once

#include <elf.h>
#include <link.h>

#include <cstdint>

namespace tidepool::elf {

struct Library {
  std::uintptr_t base = 0;
  const ElfW(Phdr) * headers = nullptr;
  std::size_t header_count = 0;
  ElfW(Sym) * symbols = nullptr;
  const char* strings = nullptr;
  std::size_t strings_size = 0;
  const std::uint32_t* gnu_hash = nullptr;
  const std::uint32_t* sysv_hash = nullptr;
  const char* soname = nullptr;  // null where it has none
  const char* path = nullptr;    // as the loader knows it
};

bool equal(const char* left, const char* right);
bool starts_with(const char* text, const char* prefix);

// False for an object without a dynamic symbol table (the vdso's may be unreadable).
bool read_library(const dl_phdr_info& info, Library& out);

// The same from the loader's own list, without its program headers.
bool read_library(const link_map& map, Library& out);

// Needed before symbols are redirected. Requires: a shared library whose first segment begins with the
// file, as the driver's and libc's do.
bool find_headers(Library& library);

// The DT_SONAME, else the file name: programs open the driver as libcuda.so and as libcuda.so.1.
const char* name_of(const Library& library);

// The defined dynamic symbol `name`, or null. With several versions of one name: the one after `after`.
ElfW(Sym) * find_symbol(const Library& library, const char* name, const ElfW(Sym) * after = nullptr);

// The address of a defined symbol, or null.
void* address_of(const Library& library, const char* name);

// Is `address` that of a defined dynamic symbol? O(symbols).
bool exports(const Library& library, const void* address);

// Makes every later lookup of `symbol`, by anyone, yield `target`. False where the page cannot be
// written (a hardened system); nothing has changed then.
bool redirect_symbol(const Library& library, ElfW(Sym) * symbol, const void* target);

}  // namespace tidepool::elf
