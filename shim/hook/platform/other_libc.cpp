// What the compiler's runtime, linked into the shim, asks of glibc alone. A process of another libc (musl)
// inherits the preload too, and its loader ends the process if a preload has a need it cannot meet
// (measured: exit code 127). So the linker leads each such need here (--wrap), where it is a weak one; none
// of it is reached in a process that does not use CUDA, and none with CUDA has another libc.
#include <dlfcn.h>
#include <time.h>

#include <cerrno>

extern "C" {

int __real__dl_find_object(void* address, void* result) __attribute__((weak));
int __wrap__dl_find_object(void* address, void* result) {
  return __real__dl_find_object != nullptr ? __real__dl_find_object(address, result) : -1;
}

unsigned __real_arc4random() __attribute__((weak));
unsigned __wrap_arc4random() { return __real_arc4random != nullptr ? __real_arc4random() : 4; }

std::size_t __wrap___strftime_l(char* out, std::size_t size, const char* format, const tm* time,
                                locale_t locale) {
  return strftime_l(out, size, format, time, locale);
}

int __real___register_atfork(void (*before)(), void (*in_parent)(), void (*in_child)(), void* library)
    __attribute__((weak));
int __wrap___register_atfork(void (*before)(), void (*in_parent)(), void (*in_child)(), void* library) {
  return __real___register_atfork != nullptr ? __real___register_atfork(before, in_parent, in_child, library)
                                             : ENOSYS;
}

int __real___cxa_at_quick_exit(void (*handler)(void*), void* library) __attribute__((weak));
int __wrap___cxa_at_quick_exit(void (*handler)(void*), void* library) {
  return __real___cxa_at_quick_exit != nullptr ? __real___cxa_at_quick_exit(handler, library) : ENOSYS;
}

// glibc has it in the loader's own file, which other loaders look for and do not have.
void* __real___tls_get_addr(void* index) __attribute__((weak));
void* __wrap___tls_get_addr(void* index) { return __real___tls_get_addr(index); }

// "There are other threads": counts of shared_ptr are then atomic, which is always right.
char __wrap___libc_single_threaded = 0;

}  // extern "C"
