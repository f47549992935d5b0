// Reads the symbol table of a library that is mapped in this process; redirect.cpp changes it.
#include "shim/hook/elf.hpp"

namespace tidepool::elf {
namespace {

std::uint32_t gnu_hash_of(const char* name) {
  std::uint32_t hash = 5381;
  for (; *name != '\0'; ++name) hash = hash * 33 + static_cast<unsigned char>(*name);
  return hash;
}

bool is_definition(const Library& library, const ElfW(Sym) & symbol, const char* name) {
  // A value of 0 is none to the loader either.
  return symbol.st_shndx != SHN_UNDEF && symbol.st_value != 0 &&
         equal(library.strings + symbol.st_name, name);
}

ElfW(Sym) * find_by_gnu_hash(const Library& library, const char* name, const ElfW(Sym) * after) {
  const std::uint32_t* table = library.gnu_hash;
  const std::uint32_t bucket_count = table[0];
  const std::uint32_t first_hashed = table[1];
  const std::uint32_t bloom_words = table[2];
  const std::uint32_t* buckets = table + 4 + bloom_words * (sizeof(ElfW(Addr)) / sizeof(std::uint32_t));
  const std::uint32_t* chain = buckets + bucket_count;
  if (bucket_count == 0) return nullptr;
  const std::uint32_t hash = gnu_hash_of(name);
  std::uint32_t index = buckets[hash % bucket_count];
  if (index < first_hashed) return nullptr;
  for (;; ++index) {
    const std::uint32_t entry = chain[index - first_hashed];
    ElfW(Sym)* symbol = library.symbols + index;
    if ((entry | 1) == (hash | 1) && (after == nullptr || symbol > after) &&
        is_definition(library, *symbol, name))
      return symbol;
    if ((entry & 1) != 0) return nullptr;
  }
}

ElfW(Sym) * find_in_order(const Library& library, const char* name, const ElfW(Sym) * after) {
  const std::uint32_t count = library.sysv_hash[1];
  std::uint32_t index = after == nullptr ? 1 : static_cast<std::uint32_t>(after - library.symbols) + 1;
  for (; index < count; ++index)
    if (is_definition(library, library.symbols[index], name)) return library.symbols + index;
  return nullptr;
}

// A GNU hash table does not say: one past the last symbol of the last chain.
std::uint32_t symbol_count(const Library& library) {
  if (library.sysv_hash != nullptr) return library.sysv_hash[1];
  const std::uint32_t* table = library.gnu_hash;
  const std::uint32_t* buckets = table + 4 + table[2] * (sizeof(ElfW(Addr)) / sizeof(std::uint32_t));
  const std::uint32_t* chain = buckets + table[0];
  std::uint32_t last = 0;
  for (std::uint32_t i = 0; i < table[0]; ++i) last = buckets[i] > last ? buckets[i] : last;
  if (last < table[1]) return table[1];
  while ((chain[last - table[1]] & 1) == 0) ++last;
  return last + 1;
}

// Fills in the tables of a library whose base is known.
bool read_dynamic(const ElfW(Dyn) * dynamic, Library& out) {
  // ld.so relocates the table in place, except where it is read-only.
  const auto located = [&](ElfW(Addr) value) { return value < out.base ? value + out.base : value; };
  ElfW(Xword) soname = 0;
  for (; dynamic->d_tag != DT_NULL; ++dynamic) {
    const ElfW(Addr) value = dynamic->d_un.d_val;
    switch (dynamic->d_tag) {
      case DT_SYMTAB: out.symbols = reinterpret_cast<ElfW(Sym)*>(located(value)); break;
      case DT_STRTAB: out.strings = reinterpret_cast<const char*>(located(value)); break;
      case DT_STRSZ: out.strings_size = value; break;
      case DT_GNU_HASH: out.gnu_hash = reinterpret_cast<const std::uint32_t*>(located(value)); break;
      case DT_HASH: out.sysv_hash = reinterpret_cast<const std::uint32_t*>(located(value)); break;
      case DT_SONAME: soname = value; break;
      default: break;
    }
  }
  if (out.symbols == nullptr || out.strings == nullptr) return false;
  if (out.gnu_hash == nullptr && out.sysv_hash == nullptr) return false;
  if (soname != 0) out.soname = out.strings + soname;
  return true;
}

}  // namespace

bool equal(const char* left, const char* right) {
  while (*left != '\0' && *left == *right) ++left, ++right;
  return *left == *right;
}

bool starts_with(const char* text, const char* prefix) {
  for (; *prefix != '\0'; ++text, ++prefix)
    if (*text != *prefix) return false;
  return true;
}

const char* name_of(const Library& library) {
  if (library.soname != nullptr) return library.soname;
  const char* name = library.path;
  for (const char* rest = name; *rest != '\0'; ++rest)
    if (*rest == '/') name = rest + 1;
  return name;
}

bool read_library(const dl_phdr_info& info, Library& out) {
  out = {};
  out.base = info.dlpi_addr;
  out.headers = info.dlpi_phdr;
  out.header_count = info.dlpi_phnum;
  out.path = info.dlpi_name;
  for (std::size_t i = 0; i < out.header_count; ++i)
    if (out.headers[i].p_type == PT_DYNAMIC)
      return read_dynamic(reinterpret_cast<const ElfW(Dyn)*>(out.base + out.headers[i].p_vaddr), out);
  return false;
}

bool read_library(const link_map& map, Library& out) {
  out = {};
  out.base = map.l_addr;
  out.path = map.l_name;
  return map.l_ld != nullptr && read_dynamic(map.l_ld, out);
}

bool find_headers(Library& library) {
  if (library.headers != nullptr) return true;
  const auto* file = reinterpret_cast<const ElfW(Ehdr)*>(library.base);
  if (library.base == 0 || file->e_ident[EI_MAG0] != ELFMAG0 || file->e_ident[EI_MAG1] != ELFMAG1)
    return false;
  library.headers = reinterpret_cast<const ElfW(Phdr)*>(library.base + file->e_phoff);
  library.header_count = file->e_phnum;
  return true;
}

ElfW(Sym) * find_symbol(const Library& library, const char* name, const ElfW(Sym) * after) {
  return library.gnu_hash != nullptr ? find_by_gnu_hash(library, name, after)
                                     : find_in_order(library, name, after);
}

void* address_of(const Library& library, const char* name) {
  const ElfW(Sym)* symbol = find_symbol(library, name);
  return symbol == nullptr ? nullptr : reinterpret_cast<void*>(library.base + symbol->st_value);
}

bool exports(const Library& library, const void* address) {
  const std::uintptr_t value = reinterpret_cast<std::uintptr_t>(address) - library.base;
  const std::uint32_t count = symbol_count(library);
  for (std::uint32_t i = 1; i < count; ++i)
    if (library.symbols[i].st_shndx != SHN_UNDEF && library.symbols[i].st_value == value) return true;
  return false;
}

}  // namespace tidepool::elf
