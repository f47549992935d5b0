// A client library that calls the driver from a thread of its own: in a namespace, one that another libc than
// the shim's has started.
#include <pthread.h>

#include "work.h"

int defined_twice(void) { return 1; }

static void* call_driver(void* failed) {
  const struct entries driver = {cuInit, cuDevicePrimaryCtxRetain, cuCtxSetCurrent, cuMemAlloc_v2,
                                 cuMemFree_v2};
  *(int*)failed = work(&driver);
  return NULL;
}

int run_client(int* bound_to) {
  *bound_to = defined_twice();
  int failed = 20;
  pthread_t thread;
  if (pthread_create(&thread, NULL, call_driver, &failed) != 0 || pthread_join(thread, NULL) != 0) return 21;
  return failed;
}
