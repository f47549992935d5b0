// The double of libnvidia-ml.so.1: devices, their memory and the processes on them.
//
// It reads the same settings and the same books as the driver's double. Without SIM_MACHINE the
// books are private to the driver of each process, so used memory reads as 0 here.
// NVML's header is not part of the CUDA headers: the few declarations needed are written out.
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include "machine.hpp"
#include "settings.hpp"

#define NVML extern "C" __attribute__((visibility("default")))

namespace {

using Result = int;
constexpr Result success = 0, invalid_argument = 2, not_supported = 3, not_found = 6, insufficient_size = 7;

struct DeviceObject {
  int ordinal;
};
using Device = DeviceObject*;

struct Memory {
  unsigned long long total, free, used;
};
struct Memory2 {
  unsigned version;
  unsigned long long total, reserved, free, used;
};
struct ProcessInfo {
  unsigned pid;
  unsigned long long used;
  unsigned gpu_instance, compute_instance;
};
struct PciInfo {
  char legacy_id[16];
  unsigned domain, bus, device, device_id, subsystem_id;
  char id[32];
};
struct Utilization {
  unsigned gpu, memory;
};

DeviceObject devices[sim::max_devices];

int count() { return sim::settings().devices; }

bool known(Device device) { return device >= devices && device < devices + count(); }

Result at(unsigned index, Device* device) {
  if (!device || index >= static_cast<unsigned>(count())) return invalid_argument;
  devices[index].ordinal = static_cast<int>(index);
  *device = &devices[index];
  return success;
}

Result text(char* to, unsigned size, const char* from) {
  if (!to) return invalid_argument;
  if (std::strlen(from) >= size) return insufficient_size;
  std::strcpy(to, from);
  return success;
}

void uuid_text(int ordinal, char (&out)[48]) {
  // The bytes that cuDeviceGetUuid answers.
  unsigned char bytes[17] = "tidepool-sim-gp";
  bytes[15] = static_cast<unsigned char>('a' + ordinal);
  char* to = out + std::sprintf(out, "GPU-");
  for (int i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) *to++ = '-';
    to += std::sprintf(to, "%02x", bytes[i]);
  }
}

std::uint64_t used(Device device) {
  return sim::settings().machine.empty() ? 0 : sim::Machine::instance().used(device->ordinal);
}

Result fixed(Device device, unsigned value, unsigned* out) {
  if (!known(device) || !out) return invalid_argument;
  *out = value;
  return success;
}

Result processes(Device device, unsigned* size, ProcessInfo* infos) {
  if (!known(device) || !size) return invalid_argument;
  const auto found = sim::settings().machine.empty() ? std::vector<sim::Machine::Usage>{}
                                                     : sim::Machine::instance().processes(device->ordinal);
  const unsigned room = *size;
  *size = static_cast<unsigned>(found.size());
  if (room < found.size() || (!infos && !found.empty())) return insufficient_size;
  for (std::size_t i = 0; i < found.size(); ++i)
    infos[i] = {static_cast<unsigned>(found[i].pid), found[i].bytes, ~0u, ~0u};
  return success;
}

}  // namespace

NVML Result nvmlInit_v2() { return success; }
NVML Result nvmlInit() { return success; }
NVML Result nvmlInitWithFlags(unsigned) { return success; }
NVML Result nvmlShutdown() { return success; }
NVML const char* nvmlErrorString(Result result) {
  switch (result) {
    case success: return "Success";
    case invalid_argument: return "Invalid Argument";
    case not_supported: return "Not Supported";
    case not_found: return "Not Found";
    case insufficient_size: return "Insufficient Size";
    default: return "Unknown Error";
  }
}
NVML Result nvmlSystemGetDriverVersion(char* version, unsigned length) {
  return text(version, length, "580.65.06");
}
NVML Result nvmlSystemGetNVMLVersion(char* version, unsigned length) {
  return text(version, length, "13.580.65.06");
}
NVML Result nvmlSystemGetCudaDriverVersion_v2(int* version) {
  return version ? (*version = 13000, success) : invalid_argument;
}
NVML Result nvmlSystemGetCudaDriverVersion(int* version) {
  return nvmlSystemGetCudaDriverVersion_v2(version);
}

NVML Result nvmlDeviceGetCount_v2(unsigned* out) {
  if (!out) return invalid_argument;
  *out = static_cast<unsigned>(count());
  return success;
}
NVML Result nvmlDeviceGetCount(unsigned* out) { return nvmlDeviceGetCount_v2(out); }
NVML Result nvmlDeviceGetHandleByIndex_v2(unsigned index, Device* device) { return at(index, device); }
NVML Result nvmlDeviceGetHandleByIndex(unsigned index, Device* device) { return at(index, device); }
NVML Result nvmlDeviceGetHandleByPciBusId_v2(const char* id, Device* device) {
  unsigned domain = 0, bus = 0;
  if (!id || std::sscanf(id, "%x:%x:", &domain, &bus) != 2 || !bus) return invalid_argument;
  return bus - 1 < static_cast<unsigned>(count()) ? at(bus - 1, device) : not_found;
}
NVML Result nvmlDeviceGetHandleByPciBusId(const char* id, Device* device) {
  return nvmlDeviceGetHandleByPciBusId_v2(id, device);
}
NVML Result nvmlDeviceGetHandleByUUID(const char* uuid, Device* device) {
  for (int i = 0; uuid && i < count(); ++i) {
    char own[48];
    uuid_text(i, own);
    if (!std::strcmp(own, uuid)) return at(static_cast<unsigned>(i), device);
  }
  return not_found;
}
NVML Result nvmlDeviceGetIndex(Device device, unsigned* index) {
  if (!known(device) || !index) return invalid_argument;
  *index = static_cast<unsigned>(device->ordinal);
  return success;
}
NVML Result nvmlDeviceGetName(Device device, char* name, unsigned length) {
  return known(device) ? text(name, length, "Simulated H100 80GB") : invalid_argument;
}
NVML Result nvmlDeviceGetUUID(Device device, char* uuid, unsigned length) {
  if (!known(device)) return invalid_argument;
  char own[48];
  uuid_text(device->ordinal, own);
  return text(uuid, length, own);
}
NVML Result nvmlDeviceGetMinorNumber(Device device, unsigned* minor) {
  return nvmlDeviceGetIndex(device, minor);
}
NVML Result nvmlDeviceGetPciInfo_v3(Device device, PciInfo* pci) {
  if (!known(device) || !pci) return invalid_argument;
  *pci = {};
  pci->bus = static_cast<unsigned>(device->ordinal) + 1;
  std::snprintf(pci->legacy_id, sizeof pci->legacy_id, "0000:%02X:00.0", pci->bus & 0xff);
  std::snprintf(pci->id, sizeof pci->id, "00000000:%02X:00.0", pci->bus & 0xff);
  pci->device_id = 0x233010de;
  return success;
}
NVML Result nvmlDeviceGetCudaComputeCapability(Device device, int* major, int* minor) {
  if (!known(device) || !major || !minor) return invalid_argument;
  *major = 9;
  *minor = 0;
  return success;
}
NVML Result nvmlDeviceGetMemoryInfo(Device device, Memory* memory) {
  if (!known(device) || !memory) return invalid_argument;
  const auto total = sim::settings().memory, taken = used(device);
  *memory = {total, total - std::min<std::uint64_t>(total, taken), taken};
  return success;
}
NVML Result nvmlDeviceGetMemoryInfo_v2(Device device, Memory2* memory) {
  if (!known(device) || !memory) return invalid_argument;
  const auto total = sim::settings().memory, taken = used(device);
  *memory = {memory->version, total, 0, total - std::min<std::uint64_t>(total, taken), taken};
  return success;
}
NVML Result nvmlDeviceGetComputeRunningProcesses_v3(Device device, unsigned* size, ProcessInfo* infos) {
  return processes(device, size, infos);
}
NVML Result nvmlDeviceGetComputeRunningProcesses_v2(Device device, unsigned* size, ProcessInfo* infos) {
  return processes(device, size, infos);
}
NVML Result nvmlDeviceGetGraphicsRunningProcesses_v3(Device device, unsigned* size, ProcessInfo*) {
  return known(device) && size ? (*size = 0, success) : invalid_argument;
}
NVML Result nvmlDeviceGetUtilizationRates(Device device, Utilization* rates) {
  return known(device) && rates ? (*rates = {0, 0}, success) : invalid_argument;
}
// No link between devices and no MIG are simulated yet: the queries say so, as on a card without.
NVML Result nvmlDeviceGetMigMode(Device, unsigned*, unsigned*) { return not_supported; }
NVML Result nvmlDeviceIsMigDeviceHandle(Device device, unsigned* mig) {
  return known(device) && mig ? (*mig = 0, success) : invalid_argument;
}
NVML Result nvmlDeviceGetNvLinkState(Device, unsigned, unsigned*) { return not_supported; }
NVML Result nvmlDeviceGetFieldValues(Device, int, void*) { return not_supported; }
NVML Result nvmlDeviceGetCurrPcieLinkGeneration(Device device, unsigned* out) {
  return fixed(device, 5, out);
}
NVML Result nvmlDeviceGetCurrPcieLinkWidth(Device device, unsigned* out) { return fixed(device, 16, out); }
NVML Result nvmlDeviceGetMaxPcieLinkGeneration(Device device, unsigned* out) { return fixed(device, 5, out); }
NVML Result nvmlDeviceGetMaxPcieLinkWidth(Device device, unsigned* out) { return fixed(device, 16, out); }
NVML Result nvmlDeviceGetPcieSpeed(Device, unsigned*) { return not_supported; }
NVML Result nvmlDeviceGetP2PStatus(Device, Device, int, int*) { return not_supported; }
NVML Result nvmlDeviceGetTopologyCommonAncestor(Device, Device, int*) { return not_supported; }
