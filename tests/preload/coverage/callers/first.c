// Asks the loader for things that depend on who asks: the next definition after this library's own, and a
// library that only this one's RUNPATH leads to. A wrapper of dlsym or dlopen that calls instead of jumping
// is taken for the one who asks.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>

__attribute__((visibility("default"))) int who(void);
__attribute__((visibility("default"))) int cuOnlyHere(void);
__attribute__((visibility("default"))) int find_aside(void);

static int next_of(const char* name) {
  int (*next)(void);
  *(void**)&next = dlsym(RTLD_NEXT, name);
  return next == NULL ? 0 : next();
}

int who(void) { return 10 + next_of("who"); }
int cuOnlyHere(void) { return 20 + next_of("cuOnlyHere"); }

int find_aside(void) {
  return (dlopen("libaside.so", RTLD_NOW) != NULL) + (dlopen("libaside.so", RTLD_NOW | RTLD_DEEPBIND) != NULL) +
         (dlmopen(LM_ID_BASE, "libaside.so", RTLD_NOW) != NULL) +
         (dlmopen(LM_ID_BASE, "libaside.so", RTLD_NOW | RTLD_DEEPBIND) != NULL);
}
