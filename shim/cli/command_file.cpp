// What a command's file is, as far as it decides whether anything can be put in front of it.
#include "shim/cli/command_file.hpp"

#include <elf.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <optional>
#include <sstream>
#include <string_view>
#include <vector>

namespace tidepool::cli {

std::string find_in_path(const std::string& name) {
  if (name.find('/') != std::string::npos) return name;
  const char* path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "" : path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    const std::string file = (folder.empty() ? "." : folder) + "/" + name;
    if (::access(file.c_str(), X_OK) == 0) return file;
  }
  return name;
}

namespace {

constexpr int kMostInterpreters = 4;  // as the kernel follows them
constexpr std::size_t kLongestFirstLine = 256;

// The interpreter that a script's first line names; empty: it is none.
std::string interpreter_of(std::ifstream& file) {
  std::string line(kLongestFirstLine, '\0');
  file.read(line.data(), static_cast<std::streamsize>(line.size()));
  line.resize(static_cast<std::size_t>(file.gcount()));
  if (!line.starts_with("#!")) return "";
  std::istringstream words(line.substr(2, line.find('\n') - 2));
  std::string program;
  std::string argument;
  words >> program >> argument;
  const bool by_env = program.ends_with("/env") && !argument.empty() && argument[0] != '-';
  return by_env ? find_in_path(argument) : program;
}

struct Program {
  bool is_64_bit = false;
  bool is_dynamic = false;
  bool names_itself = false;  // a loader: it has no interpreter, and takes preloads along
  std::string loader;
};

template <typename T>
bool read_at(std::ifstream& file, std::uint64_t offset, T& out) {
  file.clear();
  file.seekg(static_cast<std::streamoff>(offset));
  return static_cast<bool>(file.read(reinterpret_cast<char*>(&out), sizeof out));
}

std::string string_at(std::ifstream& file, std::uint64_t offset, std::uint64_t size) {
  std::string text(std::min<std::uint64_t>(size, 4096), '\0');
  file.clear();
  file.seekg(static_cast<std::streamoff>(offset));
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  return text.c_str();
}

bool has_name(std::ifstream& file, const Elf64_Phdr& dynamic) {
  for (std::uint64_t at = 0; at < dynamic.p_filesz; at += sizeof(Elf64_Dyn)) {
    Elf64_Dyn entry{};
    if (!read_at(file, dynamic.p_offset + at, entry) || entry.d_tag == DT_NULL) return false;
    if (entry.d_tag == DT_SONAME) return true;
  }
  return false;
}

std::optional<Program> read_program(std::ifstream& file) {
  Elf64_Ehdr header{};
  if (!read_at(file, 0, header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return std::nullopt;
  Program program;
  program.is_64_bit = header.e_ident[EI_CLASS] == ELFCLASS64;
  for (int i = 0; program.is_64_bit && i < header.e_phnum; ++i) {
    Elf64_Phdr part{};
    if (!read_at(file, header.e_phoff + static_cast<std::uint64_t>(i) * sizeof part, part))
      return std::nullopt;
    if (part.p_type == PT_INTERP) program.loader = string_at(file, part.p_offset, part.p_filesz);
    if (part.p_type == PT_DYNAMIC) program.names_itself = has_name(file, part);
  }
  program.is_dynamic = !program.loader.empty() || program.names_itself;
  return program;
}

// The kernel marks such a process, and its loader then takes no preload by path.
bool gains_rights(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return false;
  const bool set_user = (status.st_mode & S_ISUID) != 0 && status.st_uid != ::getuid();
  const bool set_group = (status.st_mode & S_ISGID) != 0 && status.st_gid != ::getgid();
  const bool capable = ::getuid() != 0 && ::getxattr(path.c_str(), "security.capability", nullptr, 0) > 0;
  return set_user || set_group || capable;
}

}  // namespace

std::string why_out_of_reach(const std::string& name) {
  std::string path = find_in_path(name);
  for (int depth = 0; depth < kMostInterpreters; ++depth) {
    std::ifstream file(path, std::ios::binary);
    if (!file) return "";
    if (gains_rights(path))
      return path + " runs with rights of its own (setuid), where the loader takes no preload";
    const std::optional<Program> program = read_program(file);
    if (!program) {
      file.clear();
      file.seekg(0);
      const std::string interpreter = interpreter_of(file);
      if (interpreter.empty()) return "";
      path = interpreter;
      continue;
    }
    if (!program->is_64_bit) return path + " is not a 64-bit program";
    if (!program->is_dynamic) return path + " is linked statically, so nothing can be put in front of it";
    if (program->loader.find("ld-musl") != std::string::npos)
      return path + " uses musl, for which there is no CUDA driver";
    return "";
  }
  return "";
}

}  // namespace tidepool::cli
