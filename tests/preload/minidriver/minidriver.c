// A small libcuda, in C: what a driver may do that the simulated one does not.
// - It can be unloaded: nothing of C++ pins it in memory, so saved addresses really go stale.
// - cuGetProcAddress answers with addresses that are not exported.
// Writes the names of the calls it gets as the simulated driver does: a line of JSON each, to SIM_LOG.
#include <fcntl.h>
#include <poll.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void log_call(const char* name) {
  const char* path = getenv("SIM_LOG");
  if (path == NULL) return;
  char line[128] = "{\"entry\":\"";
  strcat(strcat(line, name), "\"}\n");
  const int file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (file < 0 || write(file, line, strlen(line)) < 0) abort();
  close(file);
}

static unsigned long long allocations;

static int hidden_allocate(unsigned long long* out, size_t bytes) {
  log_call("cuMemAlloc_v2");
  if (bytes == 0) return 1;
  *out = 0x700000000000ull + 512 * ++allocations;
  return 0;
}
static int hidden_free(unsigned long long pointer) {
  log_call("cuMemFree_v2");
  return pointer == 0x1234 ? 1 : 0;
}

// A call that waits for a long time, at a point where a thread may be cancelled.
int cuMemAllocHost_v2(void** out, size_t bytes) {
  (void)out;
  (void)bytes;
  return poll(NULL, 0, 60000);
}

int cuInit(unsigned flags) {
  log_call("cuInit");
  return flags == 0 ? 0 : 1;
}
int cuMemAlloc_v2(unsigned long long* out, size_t bytes) { return hidden_allocate(out, bytes); }
int cuMemFree_v2(unsigned long long pointer) { return hidden_free(pointer); }
int cuCtxGetDevice(int* device) { return *device = 0, 0; }
int cuCtxSetCurrent(void* context) { return context == NULL ? 201 : 0; }
int cuDeviceGetCount(int* count) { return *count = 1, 0; }
// For the benchmark: as fast as a call can be.
int cuGraphLaunch(void* graph, void* stream) { return graph == stream ? 0 : 1; }
int cuDevicePrimaryCtxRetain(void** context, int device) {
  log_call("cuDevicePrimaryCtxRetain");
  *context = &allocations;
  return device == 0 ? 0 : 101;
}

int cuGetProcAddress_v2(const char* name, void** entry, int version, uint64_t flags, int* status) {
  static const struct {
    const char* name;
    void* entry;
  } entries[] = {{"cuInit", (void*)&cuInit},
                 {"cuDevicePrimaryCtxRetain", (void*)&cuDevicePrimaryCtxRetain},
                 {"cuCtxSetCurrent", (void*)&cuCtxSetCurrent},
                 {"cuMemAlloc", (void*)&hidden_allocate},
                 {"cuMemFree", (void*)&hidden_free}};
  (void)version;
  (void)flags;
  log_call("cuGetProcAddress_v2");
  *entry = NULL;
  for (size_t i = 0; i < sizeof entries / sizeof entries[0]; ++i)
    if (strcmp(name, entries[i].name) == 0) *entry = entries[i].entry;
  if (status != NULL) *status = *entry == NULL ? 1 : 0;
  return 0;
}
