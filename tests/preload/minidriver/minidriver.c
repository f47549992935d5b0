// A libcuda of a dozen lines, in C: what a driver may do that the simulated one does not.
// - It can be unloaded: nothing of C++ pins it in memory, so saved addresses really go stale.
// - cuGetProcAddress answers with addresses that are not exported.
#include <poll.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

static unsigned long long allocations;

static int hidden_allocate(unsigned long long* out, size_t bytes) {
  if (bytes == 0) return 1;
  *out = 0x700000000000ull + 512 * ++allocations;
  return 0;
}
static int hidden_free(unsigned long long pointer) { return pointer == 0x1234 ? 1 : 0; }

// A call that waits for a long time, at a point where a thread may be cancelled.
int cuMemAllocHost_v2(void** out, size_t bytes) {
  (void)out;
  (void)bytes;
  return poll(NULL, 0, 60000);
}

int cuInit(unsigned flags) { return flags == 0 ? 0 : 1; }
int cuMemAlloc_v2(unsigned long long* out, size_t bytes) { return hidden_allocate(out, bytes); }
int cuMemFree_v2(unsigned long long pointer) { return hidden_free(pointer); }
int cuCtxGetDevice(int* device) { return *device = 0, 0; }
int cuDeviceGetCount(int* count) { return *count = 1, 0; }

int cuGetProcAddress_v2(const char* name, void** entry, int version, uint64_t flags, int* status) {
  (void)version;
  (void)flags;
  *entry = strcmp(name, "cuMemAlloc") == 0  ? (void*)&hidden_allocate
           : strcmp(name, "cuMemFree") == 0 ? (void*)&hidden_free
                                            : NULL;
  if (status != NULL) *status = *entry == NULL ? 1 : 0;
  return 0;
}
