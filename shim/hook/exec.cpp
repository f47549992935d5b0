// New programs, started without the shim by a process in which it had set a framework's variables: they do
// not get these, since nobody in them could take them back.
//
// May run in the child of a vfork or of a fork of many threads: no allocation, no lock, no look-up that
// takes one. exec functions with a list of arguments call libc's own execve and are not seen.
#include <alloca.h>
#include <dlfcn.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <string_view>

#include "shim/base/frameworks.hpp"
#include "shim/hook/loader.hpp"

namespace tidepool {
namespace {

using Environment = char* const*;

constexpr std::size_t kMostVariables = 16384;  // on the stack; a longer environment is passed on as it is

std::string_view value_of(Environment variables, std::string_view name) {
  for (; variables != nullptr && *variables != nullptr; ++variables) {
    const std::string_view entry = *variables;
    if (entry.starts_with(name) && entry.size() > name.size() && entry[name.size()] == '=')
      return entry.substr(name.size() + 1);
  }
  return {};
}

// What was set for a framework and must not outlive the shim; empty where there is nothing, or where the
// new program is preloaded again and decides afresh.
std::string_view left_behind(Environment variables) {
  const std::string_view marker = value_of(variables, kFrameworkMarker);
  if (marker.empty() || value_of(variables, "LD_PRELOAD").find("libtidepool") != std::string_view::npos)
    return {};
  return marker;
}

// Is the entry one of the marker's, with the value that was set?
bool is_marked(std::string_view entry, std::string_view marker) {
  if (entry.starts_with(kFrameworkMarker) && entry[std::string_view(kFrameworkMarker).size()] == '=')
    return true;
  while (!marker.empty()) {
    const std::string_view set = marker.substr(0, marker.find(';'));
    if (entry == set) return true;
    marker.remove_prefix(set.size() == marker.size() ? set.size() : set.size() + 1);
  }
  return false;
}

std::size_t count(Environment variables) {
  std::size_t number = 0;
  while (variables[number] != nullptr) ++number;
  return number;
}

void copy_unmarked(Environment from, std::string_view marker, char** to) {
  for (; *from != nullptr; ++from)
    if (!is_marked(*from, marker)) *to++ = *from;
  *to = nullptr;
}

// `call(variables)` with the environment that the new program is to have.
template <typename Call>
int with_environment(Environment variables, const Call& call) {
  const std::string_view marker = left_behind(variables);
  if (marker.empty()) return call(variables);
  const std::size_t number = count(variables);
  if (number > kMostVariables) return call(variables);
  auto** kept = static_cast<char**>(alloca((number + 1) * sizeof(char*)));
  copy_unmarked(variables, marker, kept);
  return call(kept);
}

template <typename Function>
Function* known_or(std::atomic<void*>& known, void* (*find)()) {
  if (known.load(std::memory_order_relaxed) == nullptr) known.store(find(), std::memory_order_relaxed);
  return reinterpret_cast<Function*>(known.load(std::memory_order_relaxed));
}

// Of one version, and called between fork and the new program, so it is found without a lock. The spawns
// have two, of which dlsym knows the right one, and are no part of a child's few last steps.
auto* libc_execvpe() {
  static constinit std::atomic<void*> known{nullptr};
  return known_or<decltype(::execvpe)>(known, [] { return libc_symbol("execvpe"); });
}
auto* libc_posix_spawn() {
  static constinit std::atomic<void*> known{nullptr};
  return known_or<decltype(::posix_spawn)>(known, [] { return dlsym(RTLD_NEXT, "posix_spawn"); });
}
auto* libc_posix_spawnp() {
  static constinit std::atomic<void*> known{nullptr};
  return known_or<decltype(::posix_spawnp)>(known, [] { return dlsym(RTLD_NEXT, "posix_spawnp"); });
}

}  // namespace
}  // namespace tidepool

using namespace tidepool;

#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT int execve(const char* path, char* const arguments[], char* const variables[]) noexcept {
  return with_environment(variables, [&](Environment kept) {
    return static_cast<int>(::syscall(SYS_execve, path, arguments, kept));
  });
}

EXPORT int execv(const char* path, char* const arguments[]) noexcept {
  return execve(path, arguments, environ);
}

EXPORT int execvpe(const char* file, char* const arguments[], char* const variables[]) noexcept {
  return with_environment(variables, [&](Environment kept) { return libc_execvpe()(file, arguments, kept); });
}

EXPORT int execvp(const char* file, char* const arguments[]) noexcept {
  return execvpe(file, arguments, environ);
}

EXPORT int posix_spawn(pid_t* pid, const char* path, const posix_spawn_file_actions_t* actions,
                       const posix_spawnattr_t* attributes, char* const arguments[],
                       char* const variables[]) {
  return with_environment(variables, [&](Environment kept) {
    return libc_posix_spawn()(pid, path, actions, attributes, arguments, kept);
  });
}

EXPORT int posix_spawnp(pid_t* pid, const char* file, const posix_spawn_file_actions_t* actions,
                        const posix_spawnattr_t* attributes, char* const arguments[],
                        char* const variables[]) {
  return with_environment(variables, [&](Environment kept) {
    return libc_posix_spawnp()(pid, file, actions, attributes, arguments, kept);
  });
}
