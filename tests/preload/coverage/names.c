// Prints what dladdr calls the driver's entries that were looked up: profilers and crash handlers do so.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>

int main(void) {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  const char* names[] = {"cuInit", "cuMemAlloc_v2", "cuMemFree_v2", "cuCtxSetCurrent"};
  for (size_t i = 0; driver != NULL && i < sizeof names / sizeof names[0]; ++i) {
    Dl_info info;
    const int known = dladdr(dlsym(driver, names[i]), &info);
    printf("%s is %s\n", names[i], known != 0 && info.dli_sname != NULL ? info.dli_sname : "unknown");
  }
  return driver == NULL;
}
