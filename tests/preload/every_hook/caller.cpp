// Calls every entry of hooks.def, by dlsym and by cuGetProcAddress at the version of its row, with arguments
// that mean nothing: zeros, and pointers to zeros. What the driver answers does not matter, only that it is
// asked. Made from the table, so a new row is called without a line here.
//
//   every_hook             all of them
//   every_hook NAME        this one, in a process whose memory was used and given back before
#include <signal.h>
#include <spawn.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
#include <thread>

#include <cstring>
#include <string>
#include <type_traits>

#include "tests/preload/victims/driver.hpp"

namespace {

alignas(64) unsigned char zeros[1 << 16];

template <typename T>
concept Complete = requires {
  sizeof(T);
};

// A handle is a pointer to a type that nobody knows: null. Any other pointer may be read or written.
template <typename T>
T nothing() {
  if constexpr (!std::is_pointer_v<T>) {
    return T{};
  } else if constexpr (std::is_void_v<std::remove_pointer_t<T>> || Complete<std::remove_pointer_t<T>>) {
    return reinterpret_cast<T>(zeros);
  } else {
    return nullptr;
  }
}

template <typename Signature>
struct Call;
template <typename... Parameters>
struct Call<CUresult(Parameters...)> {
  static void make(void* entry) {
    std::memset(zeros, 0, sizeof zeros);
    reinterpret_cast<CUresult (*)(Parameters...)>(entry)(nothing<Parameters>()...);
  }
};

struct Row {
  const char* symbol;
  int version;
  void (*call)(void* entry);
};

const Row kRows[] = {
#define HOOK(symbol, family, version) {#symbol, version, &Call<decltype(::symbol)>::make},
#include "shim/hook/hooks.def"
};

void* by_procaddress(const Row& row) {
  std::string base = row.symbol;
  const bool per_thread = base.ends_with("_ptsz");
  if (per_thread) base.resize(base.size() - 5);
  if (const auto abi = base.rfind("_v"); abi != std::string::npos && abi + 3 == base.size()) base.resize(abi);
  void* entry = nullptr;
  OK(CU(cuGetProcAddress_v2)(
      base.c_str(), &entry, row.version,
      per_thread ? CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM : CU_GET_PROC_ADDRESS_LEGACY_STREAM,
      nullptr));
  return entry;
}

void call_all() {
  for (const Row& row : kRows) {
    void* entry = dlsym(driver_handle(), row.symbol);
    void* asked_for = by_procaddress(row);
    if (entry != asked_for) std::printf("%s: two answers\n", row.symbol);
    row.call(entry);
    row.call(asked_for);
  }
}

void call_one(const char* name) {
  CUdeviceptr block = 0;
  OK(CU(cuMemAlloc_v2)(&block, 64 * kMiB));
  OK(CU(cuMemFree_v2)(block));
  for (const Row& row : kRows)
    if (std::strcmp(row.symbol, name) == 0) row.call(dlsym(driver_handle(), name));
}

}  // namespace

// Ends the process by a way that runs no exit handler.
void end_by(const char* way) {
  CUdeviceptr block = 0;
  OK(CU(cuMemAlloc_v2)(&block, kMiB));
  if (std::strcmp(way, "vfork") == 0) {
    if (vfork() == 0) _exit(0);  // shares this memory, and is another process
    OK(CU(cuMemFree_v2)(block));
  }
  std::printf("done\n");
  std::fflush(stdout);
  if (std::strcmp(way, "handler") == 0) {
    signal(SIGUSR1, [](int) { _exit(0); });
    raise(SIGUSR1);
  }
  if (std::strcmp(way, "signals") == 0) {  // one that comes while the report is written
    signal(SIGALRM, [](int) {});
    const itimerval often{{0, 50}, {0, 50}};
    setitimer(ITIMER_REAL, &often, nullptr);
  }
  if (std::strcmp(way, "quick_exit") == 0) quick_exit(0);
  if (std::strcmp(way, "pthread_exit") == 0) {  // the last thread ends the process
    std::thread([] {}).detach();
    pthread_exit(nullptr);
  }
  if (std::strcmp(way, "threads") == 0) std::thread([] { _exit(0); }).detach();
  std::strcmp(way, "_Exit") == 0 ? _Exit(0) : _exit(0);
}

// Starts `env` in this process's place, or beside it, as it is asked to.
void start_by(const std::string& way) {
  char name[] = "env";
  char* const command[] = {name, nullptr};
  if (way == "execve") execve("/usr/bin/env", command, environ);
  if (way == "execv") execv("/usr/bin/env", command);
  if (way == "execvp") execvp("env", command);
  if (way == "execvpe") execvpe("env", command, environ);
  pid_t child = 0;
  HOLDS((way == "posix_spawn" ? posix_spawn(&child, "/usr/bin/env", nullptr, nullptr, command, environ)
                              : posix_spawnp(&child, "env", nullptr, nullptr, command, environ)) == 0);
  HOLDS(waitpid(child, nullptr, 0) == child);
}

int main(int count, char** arguments) {
  if (count == 4) {  // start without|with WAY
    if (std::strcmp(arguments[2], "without") == 0) unsetenv("LD_PRELOAD");
    return start_by(arguments[3]), 0;
  }
  start_driver();
  if (count == 3) end_by(arguments[2]);
  count == 2 ? call_one(arguments[1]) : call_all();
  std::printf("done\n");
  return 0;
}
