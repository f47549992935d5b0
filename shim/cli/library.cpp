// Where libtidepool.so and its audit companion are, whether the loader can take them, and the list that
// names them for it.
#include "shim/cli/library.hpp"

#include <elf.h>
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

namespace tidepool::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSeparators = ": ";

std::string_view base_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

}  // namespace

Library find_library() {
  if (const char* named = std::getenv("TIDEPOOL_LIBRARY"); named != nullptr && *named != '\0') {
    std::error_code failed;
    const fs::path absolute = fs::absolute(named, failed);  // the command may change its directory
    const std::string path = failed ? named : absolute.string();
    return {path, preload_problem(path)};
  }
  std::error_code failed;
  const fs::path here = fs::read_symlink("/proc/self/exe", failed).parent_path();
  const std::string name = "libtidepool.so";
  const fs::path places[] = {here / ".." / name, here / ".." / TIDEPOOL_LIBDIR / "tidepool" / name,
                             here / ".." / TIDEPOOL_LIBDIR / name, here / "../lib/tidepool" / name,
                             here / "../lib" / name};
  for (const fs::path& place : places) {
    const std::string path = place.lexically_normal().string();
    if (fs::exists(place, failed)) return {path, preload_problem(path)};
  }
  const std::string path = places[0].lexically_normal().string();
  return {path, preload_problem(path)};
}

Library find_companion(const Library& library) {
  const std::string path = fs::path(library.path).replace_filename("libtidepool-audit.so").string();
  return {path, preload_problem(path)};
}

// Before 2.35 any auditor makes the loader look into every call through a PLT.
std::string audit_problem(std::string_view glibc_version) {
  int major = 0;
  int minor = 0;
  const std::string version(glibc_version);
  if (std::sscanf(version.c_str(), "%d.%d", &major, &minor) == 2 &&
      (major > 2 || (major == 2 && minor >= 35)))
    return "";
  return "needs glibc 2.35 or later, this is " + version;
}

std::string preload_problem(const std::string& path) {
  if (path.find_first_of(kSeparators) != std::string::npos)
    return "has a space or a colon in its path, which LD_PRELOAD cannot name";
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return std::string("cannot be read (") + std::strerror(errno) + ")";
  Elf64_Ehdr header{};
  const ssize_t length = ::read(file, &header, sizeof header);
  ::close(file);
  const bool shared_object = length == static_cast<ssize_t>(sizeof header) &&
                             std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 &&
                             header.e_ident[EI_CLASS] == ELFCLASS64 && header.e_type == ET_DYN;
  return shared_object ? "" : "is not a 64-bit shared object";
}

std::string with_preload(std::string_view list, const std::string& library) {
  std::string result = library;
  while (!list.empty()) {
    const std::string_view entry = list.substr(0, list.find_first_of(kSeparators));
    list.remove_prefix(std::min(list.size(), entry.size() + 1));
    if (entry.empty() || entry == library || base_name(entry) == base_name(library)) continue;
    result += ':';
    result += entry;
  }
  return result;
}

}  // namespace tidepool::cli
