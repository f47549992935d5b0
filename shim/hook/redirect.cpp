// Changes the symbol table of a library that is mapped in this process. Apart from elf.cpp, which needs
// nothing of libc: the audit companion has none.
#include <sys/mman.h>
#include <unistd.h>

#include "shim/hook/elf.hpp"

namespace tidepool::elf {
namespace {

int protection_of(const Library& library, std::uintptr_t address) {
  int protection = PROT_READ;
  for (std::size_t i = 0; i < library.header_count; ++i) {
    const ElfW(Phdr)& header = library.headers[i];
    const std::uintptr_t begin = library.base + header.p_vaddr;
    if (address < begin || address >= begin + header.p_memsz) continue;
    if (header.p_type == PT_GNU_RELRO) return PROT_READ;
    if (header.p_type != PT_LOAD) continue;
    protection = ((header.p_flags & PF_R) != 0 ? PROT_READ : 0) |
                 ((header.p_flags & PF_W) != 0 ? PROT_WRITE : 0) |
                 ((header.p_flags & PF_X) != 0 ? PROT_EXEC : 0);
  }
  return protection;
}

}  // namespace

bool redirect_symbol(const Library& library, ElfW(Sym) * symbol, const void* target) {
  const auto word = reinterpret_cast<std::uintptr_t>(&symbol->st_value);
  const auto page_size = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const std::uintptr_t page = word & ~(page_size - 1);
  int protection = protection_of(library, word);
  // Old linkers put the tables into the executable segment. A page that lies wholly inside them holds
  // no code, so it can lose its X for good: a hardened system forbids W+X and X again after W.
  if ((protection & PROT_EXEC) != 0 && page >= reinterpret_cast<std::uintptr_t>(library.symbols) &&
      page + page_size <= reinterpret_cast<std::uintptr_t>(library.strings) + library.strings_size)
    protection &= ~PROT_EXEC;
  if ((protection & PROT_WRITE) == 0 &&
      mprotect(reinterpret_cast<void*>(page), page_size, protection | PROT_WRITE) != 0)
    return false;
  __atomic_store_n(&symbol->st_value, reinterpret_cast<std::uintptr_t>(target) - library.base,
                   __ATOMIC_RELEASE);
  if ((protection & PROT_WRITE) == 0) mprotect(reinterpret_cast<void*>(page), page_size, protection);
  return true;
}

}  // namespace tidepool::elf
