// Reads the DT_NEEDED entries of a file that is about to be loaded.
#include "shim/hook/needs.hpp"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "shim/hook/objects.hpp"

namespace tidepool {
namespace {

// Of an ordinary file; what goes beyond is "cannot be read".
constexpr std::size_t kMostHeaders = 32;
constexpr std::size_t kLongestName = 128;

class File {
 public:
  explicit File(const char* path)
      : descriptor_(static_cast<int>(syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC))) {}
  ~File() {
    if (descriptor_ >= 0) syscall(SYS_close, descriptor_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  // The bytes that were there, at most `size`.
  std::size_t read(void* out, std::size_t size, std::size_t offset) const {
    const long got = descriptor_ < 0 ? -1 : syscall(SYS_pread64, descriptor_, out, size, offset);
    return got < 0 ? 0 : static_cast<std::size_t>(got);
  }

 private:
  const int descriptor_;
};

class ObjectFile {
 public:
  explicit ObjectFile(const char* path) : file_(path) {
    ElfW(Ehdr) header{};
    if (file_.read(&header, sizeof header, 0) != sizeof header || header.e_phnum > kMostHeaders ||
        !elf::starts_with(reinterpret_cast<const char*>(header.e_ident), ELFMAG))
      return;
    const std::size_t size = header.e_phnum * sizeof headers_[0];
    if (file_.read(headers_, size, header.e_phoff) == size) count_ = header.e_phnum;
  }

  // Calls `visit(name)` for each object that it needs until that gives true. False: it could not be read.
  template <typename Visit>
  bool for_each_need(const Visit& visit) const {
    std::size_t strings = 0;
    const bool whole = for_each_entry([&](const ElfW(Dyn) & entry) {
      if (entry.d_tag == DT_STRTAB) strings = offset_of(entry.d_un.d_ptr);
      return false;
    });
    if (!whole || strings == 0) return false;
    bool readable = true;
    for_each_entry([&](const ElfW(Dyn) & entry) {
      char name[kLongestName + 1] = {};
      if (entry.d_tag != DT_NEEDED) return false;
      readable = file_.read(name, kLongestName, strings + entry.d_un.d_val) > 0;
      return !readable || visit(static_cast<const char*>(name));
    });
    return readable;
  }

 private:
  template <typename Visit>
  bool for_each_entry(const Visit& visit) const {
    for (std::size_t i = 0; i < count_; ++i) {
      if (headers_[i].p_type != PT_DYNAMIC) continue;
      for (std::size_t at = 0; at < headers_[i].p_filesz; at += sizeof(ElfW(Dyn))) {
        ElfW(Dyn) entry{};
        if (file_.read(&entry, sizeof entry, headers_[i].p_offset + at) != sizeof entry) return false;
        if (entry.d_tag == DT_NULL || visit(entry)) return true;
      }
    }
    return false;
  }

  std::size_t offset_of(ElfW(Addr) address) const {
    for (std::size_t i = 0; i < count_; ++i)
      if (headers_[i].p_type == PT_LOAD && address >= headers_[i].p_vaddr &&
          address < headers_[i].p_vaddr + headers_[i].p_filesz)
        return address - headers_[i].p_vaddr + headers_[i].p_offset;
    return 0;
  }

  File file_;
  ElfW(Phdr) headers_[kMostHeaders];
  std::size_t count_ = 0;
};

bool is_loaded(const char* name) {
  bool found = false;
  for_each_library(
      [&](const elf::Library& library) { return found = elf::equal(elf::name_of(library), name); });
  return found;
}

}  // namespace

bool may_need_driver(const char* name) {
  if (name == nullptr) return false;  // the program itself
  bool certain = false;
  for (const char* rest = name; *rest != '\0'; ++rest) certain = certain || *rest == '/';
  if (!certain) return !is_loaded(name);  // found by a search that is the loader's own
  bool may = false;
  const bool read = ObjectFile(name).for_each_need(
      [&](const char* need) { return may = elf::starts_with(need, "libcuda.so") || !is_loaded(need); });
  return may || !read;
}

}  // namespace tidepool
