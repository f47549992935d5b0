// Takes entries that SIM_FAULTS hides out of the library's symbol table, as an older driver has none.
//
// The dynamic loader passes over a symbol whose value is 0, so that dlsym answers as for a name that
// was never there. Done at load: programs that bind at start still find what is hidden.
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>

#include "faults.hpp"
#include "resolution.hpp"

namespace sim {
namespace {

// A name of the library by dlsym would be the loader's answer, perhaps another library's; the tables are
// read.
struct Tables {
  ElfW(Sym) * symbols = nullptr;
  const char* strings = nullptr;
  const std::uint32_t* hash = nullptr;
};

Tables own_tables() {
  Dl_info info{};
  void* extra = nullptr;
  Tables tables;
  if (!dladdr1(reinterpret_cast<void*>(&own_tables), &info, &extra, RTLD_DL_LINKMAP)) return tables;
  for (const ElfW(Dyn)* entry = static_cast<link_map*>(extra)->l_ld; entry->d_tag != DT_NULL; ++entry) {
    if (entry->d_tag == DT_SYMTAB) tables.symbols = reinterpret_cast<ElfW(Sym)*>(entry->d_un.d_ptr);
    if (entry->d_tag == DT_STRTAB) tables.strings = reinterpret_cast<const char*>(entry->d_un.d_ptr);
    if (entry->d_tag == DT_GNU_HASH) tables.hash = reinterpret_cast<const std::uint32_t*>(entry->d_un.d_ptr);
  }
  return tables;
}

void erase(ElfW(Sym) * symbol) {
  const auto size = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto from = reinterpret_cast<std::uintptr_t>(symbol) / size * size;
  const auto to = reinterpret_cast<std::uintptr_t>(symbol + 1);
  if (::mprotect(reinterpret_cast<void*>(from), to - from, PROT_READ | PROT_WRITE)) return;
  symbol->st_value = 0;
}

// Exported symbols are those of the hash table: header, filter words, buckets, then one chain word each.
template <typename Visitor>
void for_each_export(const Tables& tables, Visitor visit) {
  const std::uint32_t buckets = tables.hash[0], first = tables.hash[1], filter_words = tables.hash[2];
  const auto* bucket = tables.hash + 4 + filter_words * (sizeof(ElfW(Addr)) / 4);
  const std::uint32_t* chain = bucket + buckets;
  for (std::uint32_t b = 0; b < buckets; ++b) {
    if (bucket[b] < first) continue;
    for (std::uint32_t i = bucket[b];; ++i) {
      visit(tables.symbols[i]);
      if (chain[i - first] & 1) break;
    }
  }
}

[[gnu::constructor]] void hide_entries() {
  if (!hides_asked()) return;
  const Tables tables = own_tables();
  if (!tables.symbols || !tables.strings || !tables.hash) return;
  for_each_export(tables, [&](ElfW(Sym) & symbol) {
    const char* name = tables.strings + symbol.st_name;
    if (hidden(name, version_of(name))) erase(&symbol);
  });
}

}  // namespace
}  // namespace sim
