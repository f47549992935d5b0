// Look-ups. The referee exports its entries for programs that are linked with the driver, and answers
// dlsym for those that are not; see interpose.hpp.
//
// dlsym and dlopen are assembly that ends in a jump, so that the caller of RTLD_NEXT and of RUNPATH stays
// the program. RTLD_DEEPBIND is taken out of every dlopen: a library bound past the referee would be
// played without it. x86-64 only, like the simulator's host.
#include "interpose.hpp"

#include <dlfcn.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstring>

// Of the assembly below.
extern "C" {
__attribute__((visibility("hidden"))) void* referee_next_dlsym = nullptr;
__attribute__((visibility("hidden"))) void* referee_next_dlopen = nullptr;
__attribute__((visibility("hidden"))) void referee_find_loader();
__attribute__((visibility("hidden"))) void* referee_dlsym(void* handle, const char* name);
}

asm(R"(
.text
.macro JUMP_TO where
  cmpq $0, \where(%rip)
  jne 1f
  pushq %rdi
  pushq %rsi
  subq $8, %rsp
  call referee_find_loader
  addq $8, %rsp
  popq %rsi
  popq %rdi
1:
  jmp *\where(%rip)
.endm

.globl dlsym
.type dlsym, @function
dlsym:
  cmpb $'c', (%rsi)
  jne 2f
  cmpb $'u', 1(%rsi)
  je referee_dlsym
2:
  JUMP_TO referee_next_dlsym
.size dlsym, .-dlsym

.globl dlopen
.type dlopen, @function
dlopen:
  andl $~8, %esi
  JUMP_TO referee_next_dlopen
.size dlopen, .-dlopen
)");

namespace referee {
namespace {

constexpr int count = static_cast<int>(Entry::count_);
const char* const names[count] = {
#define REFEREE_ENTRY(name) #name,
#include "entries.def"
};
std::atomic<void*> behind[count];
void (*next_exit)(int) = nullptr;

using Dlsym = void* (*)(void*, const char*);
Dlsym next_dlsym() {
  if (!referee_next_dlsym) referee_find_loader();
  return reinterpret_cast<Dlsym>(referee_next_dlsym);
}

void* own(int entry) {
  void* const functions[count] = {
#define REFEREE_ENTRY(name) reinterpret_cast<void*>(&::name),
#include "entries.def"
  };
  return functions[entry];
}

int entry_named(const char* name) {
  for (int i = 0; i < count; ++i)
    if (!std::strcmp(names[i], name)) return i;
  return -1;
}

// libcuda as the program has it loaded, without a reference that would keep it.
void* driver_handle() {
  for (const char* name : {"libcuda.so.1", "libcuda.so"})
    if (void* handle = dlmopen(LM_ID_BASE, name, RTLD_NOLOAD | RTLD_LAZY)) return handle;
  return nullptr;
}

}  // namespace

void* next(Entry entry) {
  std::atomic<void*>& known = behind[static_cast<int>(entry)];
  if (void* function = known.load(std::memory_order_acquire)) return function;
  void* const driver = driver_handle();
  void* const function = driver ? next_dlsym()(driver, names[static_cast<int>(entry)]) : nullptr;
  known.store(function, std::memory_order_release);
  return function;
}

void* ours_for(void* answer) {
  for (int i = 0; answer && i < count; ++i)
    if (next(static_cast<Entry>(i)) == answer) return own(i);
  return answer;
}

void end_process(int status) {
  if (!referee_next_dlsym) referee_find_loader();
  if (next_exit) next_exit(status);
  for (;;) syscall(SYS_exit_group, status);
}

void* of_simulator(const char* name) {
  void* const driver = driver_handle();
  return driver ? next_dlsym()(driver, name) : nullptr;
}

}  // namespace referee

// Tidepool's where it comes next, else glibc's. By RTLD_NEXT and not by a handle: to open tidepool would run
// its constructor, at a time when a sanitizer's runtime may only be looking its own functions up.
void referee_find_loader() {
  const auto glibc = reinterpret_cast<referee::Dlsym>(dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34"));
  void* const next_dlsym = glibc(RTLD_NEXT, "dlsym");
  referee::next_exit = reinterpret_cast<void (*)(int)>(glibc(RTLD_NEXT, "_exit"));
  referee_next_dlopen = glibc(RTLD_NEXT, "dlopen");
  referee_next_dlsym = next_dlsym;
}

void* referee_dlsym(void* handle, const char* name) {
  void* const answer = referee::next_dlsym()(handle, name);
  const int entry = answer ? referee::entry_named(name) : -1;
  if (entry < 0) return answer;
  void* const ours = referee::own(entry);
  if (answer != ours) referee::behind[entry].store(answer, std::memory_order_release);
  return ours;
}
