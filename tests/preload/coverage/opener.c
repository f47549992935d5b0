// opener HOW ROUNDS LIBRARY: opens a client library in one of the ways there are and runs it, ROUNDS times,
// closing it in between. Says which definition of a function that both have the library is bound to, which
// must not depend on a preload.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

__attribute__((visibility("default"))) int defined_twice(void);
int defined_twice(void) { return 2; }

static void* open_client(const char* how, const char* library) {
  if (strcmp(how, "now") == 0) return dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (strcmp(how, "lazy") == 0) return dlopen(library, RTLD_LAZY | RTLD_LOCAL);
  if (strcmp(how, "deepbind") == 0) return dlopen(library, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
  if (strcmp(how, "lazy-deepbind") == 0) return dlopen(library, RTLD_LAZY | RTLD_LOCAL | RTLD_DEEPBIND);
  if (strcmp(how, "deepbind-base") == 0)
    return dlmopen(LM_ID_BASE, library, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
  if (strcmp(how, "namespace") == 0) return dlmopen(LM_ID_NEWLM, library, RTLD_NOW | RTLD_LOCAL);
  if (strcmp(how, "by-libc") == 0) {
    void* (*open_by_libc)(const char*, int);
    *(void**)&open_by_libc = dlsym(dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD), "dlopen");
    return open_by_libc(library, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
  }
  return NULL;
}

// What is loaded next must come to lie elsewhere, or an address that is stale would be right by chance.
static void occupy_what_is_free(void) {
  for (int i = 0; i < 64; ++i)
    if (mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED) abort();
}

int main(int count, char** arguments) {
  if (count != 4) return 2;
  for (int round = atoi(arguments[2]); round > 0; --round) {
    void* library = open_client(arguments[1], arguments[3]);
    if (library == NULL) {
      printf("not opened: %s\n", dlerror());
      return 3;
    }
    int (*run_client)(int*);
    *(void**)&run_client = dlsym(library, "run_client");
    int bound_to = 0;
    const int failed = run_client(&bound_to);
    printf("step %d, bound to %d\n", failed, bound_to);
    if (failed != 0) return 4;
    if (round == 1) break;
    if (dlclose(library) != 0) return 5;
    occupy_what_is_free();
  }
  return 0;
}
