// The double of libnvidia-ml.so.1: devices, their memory and the processes on them.
//
// It reads the same settings and the same books as the driver's double. Without SIM_MACHINE the
// books are private to the driver of each process, so used memory reads as 0 here. SIM_NVML has some
// questions answered as other machines would (answers.hpp).
// NVML's header is not part of the CUDA headers: the few declarations needed are written out.
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "answers.hpp"
#include "layout.hpp"
#include "machine.hpp"
#include "settings.hpp"

#define NVML extern "C" __attribute__((visibility("default")))

namespace {

using Result = int;
constexpr Result success = 0, invalid_argument = 2, not_supported = 3, not_found = 6, insufficient_size = 7;

// A GPU, or a MIG instance of one.
struct DeviceObject {
  int gpu;
  int instance;  // -1: the whole GPU
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
// The same before there were instances.
struct OldProcessInfo {
  unsigned pid;
  unsigned long long used;
};
struct PciInfo {
  char legacy_id[16];
  unsigned domain, bus, device, device_id, subsystem_id;
  char id[32];
};
struct Utilization {
  unsigned gpu, memory;
};

DeviceObject gpu_objects[sim::max_partitions];
DeviceObject instance_objects[sim::max_partitions];

int count() { return sim::gpus(); }

bool is_instance(Device device) {
  return sim::cut_into_instances() && device >= instance_objects &&
         device < instance_objects + count() * sim::instances_of_gpu();
}
bool known(Device device) {
  return (device >= gpu_objects && device < gpu_objects + count()) || is_instance(device);
}

Result at(unsigned index, Device* device) {
  if (!device || index >= static_cast<unsigned>(count())) return invalid_argument;
  gpu_objects[index] = {static_cast<int>(index), -1};
  *device = &gpu_objects[index];
  return success;
}

Device instance_at(int gpu, int instance) {
  DeviceObject& object = instance_objects[gpu * sim::instances_of_gpu() + instance];
  object = {gpu, instance};
  return &object;
}

Result text(char* to, unsigned size, const char* from) {
  if (!to) return invalid_argument;
  if (std::strlen(from) >= size) return insufficient_size;
  std::strcpy(to, from);
  return success;
}

// The bytes that cuDeviceGetUuid answers.
std::string uuid_of(Device device) {
  return device->instance < 0
             ? sim::uuid_text("GPU-", sim::gpu_uuid(device->gpu))
             : sim::uuid_text("MIG-",
                              sim::partition_uuid(device->gpu * sim::instances_of_gpu() + device->instance));
}

struct Usage {
  sim::Machine::Usage process;
  int instance;
};

// Who holds memory of the device: for a GPU the processes of all of its instances.
std::vector<Usage> usage(Device device) {
  std::vector<Usage> found;
  if (sim::settings().machine.empty()) return found;
  for (int instance = 0; instance < sim::instances_of_gpu(); ++instance) {
    if (device->instance >= 0 && device->instance != instance) continue;
    for (const auto& process :
         sim::Machine::instance().processes(device->gpu * sim::instances_of_gpu() + instance))
      found.push_back({process, instance});
  }
  return found;
}

std::uint64_t total(Device device) {
  return sim::partition_memory() *
         (device->instance < 0 ? static_cast<unsigned>(sim::instances_of_gpu()) : 1u);
}

std::uint64_t used(Device device) {
  std::uint64_t sum = 0;
  for (const Usage& entry : usage(device)) sum += entry.process.bytes;
  return std::min(sum, total(device));
}

Result fixed(Device device, unsigned value, unsigned* out) {
  if (!known(device) || !out) return invalid_argument;
  *out = value;
  return success;
}

template <typename Info>
Result processes(Device device, unsigned* size, Info* infos) {
  if (!known(device) || !size) return invalid_argument;
  const sim::NvmlAnswers& answers = sim::nvml_answers();
  const auto found = answers.processes_hidden ? std::vector<Usage>{} : usage(device);
  const unsigned room = *size;
  *size = static_cast<unsigned>(found.size());
  if (room < found.size() || (!infos && !found.empty())) return insufficient_size;
  for (std::size_t i = 0; i < found.size(); ++i) {
    infos[i] = {};
    infos[i].pid = static_cast<unsigned>(found[i].process.pid);
    infos[i].used = answers.process_memory_unavailable ? ~0ull : found[i].process.bytes;
    if constexpr (std::is_same_v<Info, ProcessInfo>) {
      infos[i].gpu_instance = sim::cut_into_instances() ? static_cast<unsigned>(found[i].instance) : ~0u;
      infos[i].compute_instance = sim::cut_into_instances() ? 0u : ~0u;
    }
  }
  return success;
}

}  // namespace

NVML Result nvmlInit_v2() {
  if (const Result fault = sim::nvml_fault("nvmlInit_v2")) return fault;
  return success;
}
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
  if (const Result fault = sim::nvml_fault("nvmlDeviceGetCount_v2")) return fault;

  if (!out) return invalid_argument;
  *out = static_cast<unsigned>(count());
  return success;
}
NVML Result nvmlDeviceGetCount(unsigned* out) { return nvmlDeviceGetCount_v2(out); }
NVML Result nvmlDeviceGetHandleByIndex_v2(unsigned index, Device* device) {
  if (const Result fault = sim::nvml_fault("nvmlDeviceGetHandleByIndex_v2")) return fault;
  return at(index, device);
}
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
  if (!uuid || !device) return invalid_argument;
  for (int gpu = 0; gpu < count(); ++gpu) {
    at(static_cast<unsigned>(gpu), device);
    if (uuid_of(*device) == uuid) return success;
    for (int instance = 0; sim::cut_into_instances() && instance < sim::instances_of_gpu(); ++instance) {
      *device = instance_at(gpu, instance);
      if (uuid_of(*device) == uuid) return success;
    }
  }
  return not_found;
}
NVML Result nvmlDeviceGetIndex(Device device, unsigned* index) {
  if (!known(device) || !index) return invalid_argument;
  *index = static_cast<unsigned>(device->gpu);
  return success;
}
NVML Result nvmlDeviceGetName(Device device, char* name, unsigned length) {
  return known(device) ? text(name, length, "Simulated H100 80GB") : invalid_argument;
}
NVML Result nvmlDeviceGetUUID(Device device, char* uuid, unsigned length) {
  if (!known(device)) return invalid_argument;
  return text(uuid, length, uuid_of(device).c_str());
}
NVML Result nvmlDeviceGetMinorNumber(Device device, unsigned* minor) {
  return nvmlDeviceGetIndex(device, minor);
}
NVML Result nvmlDeviceGetPciInfo_v3(Device device, PciInfo* pci) {
  if (!known(device) || !pci) return invalid_argument;
  *pci = {};
  pci->bus = static_cast<unsigned>(device->gpu) + 1;
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
  if (const Result fault = sim::nvml_fault("nvmlDeviceGetMemoryInfo")) return fault;

  if (!known(device) || !memory) return invalid_argument;
  const auto taken = used(device);
  *memory = {total(device), total(device) - taken, taken};
  return success;
}
NVML Result nvmlDeviceGetMemoryInfo_v2(Device device, Memory2* memory) {
  if (const Result fault = sim::nvml_fault("nvmlDeviceGetMemoryInfo_v2")) return fault;

  if (!known(device) || !memory) return invalid_argument;
  const auto taken = used(device);
  *memory = {memory->version, total(device), 0, total(device) - taken, taken};
  return success;
}
NVML Result nvmlDeviceGetComputeRunningProcesses_v3(Device device, unsigned* size, ProcessInfo* infos) {
  if (const Result fault = sim::nvml_fault("nvmlDeviceGetComputeRunningProcesses_v3")) return fault;

  return processes(device, size, infos);
}
NVML Result nvmlDeviceGetComputeRunningProcesses(Device device, unsigned* size, OldProcessInfo* infos) {
  return processes(device, size, infos);
}
NVML Result nvmlDeviceGetComputeRunningProcesses_v2(Device device, unsigned* size, ProcessInfo* infos) {
  if (const Result fault = sim::nvml_fault("nvmlDeviceGetComputeRunningProcesses_v2")) return fault;

  return processes(device, size, infos);
}
NVML Result nvmlDeviceGetGraphicsRunningProcesses_v3(Device device, unsigned* size, ProcessInfo*) {
  return known(device) && size ? (*size = 0, success) : invalid_argument;
}
NVML Result nvmlDeviceGetUtilizationRates(Device device, Utilization* rates) {
  return known(device) && rates ? (*rates = {0, 0}, success) : invalid_argument;
}
NVML Result nvmlDeviceGetMigMode(Device device, unsigned* current, unsigned* pending) {
  if (const Result fault = sim::nvml_fault("nvmlDeviceGetMigMode")) return fault;

  if (!known(device) || !current || !pending) return invalid_argument;
  if (is_instance(device)) return not_supported;
  *current = *pending = sim::cut_into_instances();
  return success;
}
NVML Result nvmlDeviceIsMigDeviceHandle(Device device, unsigned* mig) {
  return known(device) && mig ? (*mig = is_instance(device), success) : invalid_argument;
}
NVML Result nvmlDeviceGetMaxMigDeviceCount(Device device, unsigned* most) {
  if (!known(device) || !most || is_instance(device)) return invalid_argument;
  *most = 7;
  return success;
}
NVML Result nvmlDeviceGetMigDeviceHandleByIndex(Device device, unsigned index, Device* instance) {
  if (!known(device) || !instance || is_instance(device) || index >= 7) return invalid_argument;
  if (!sim::cut_into_instances()) return not_supported;
  if (index >= static_cast<unsigned>(sim::instances_of_gpu())) return not_found;
  *instance = instance_at(device->gpu, static_cast<int>(index));
  return success;
}
NVML Result nvmlDeviceGetDeviceHandleFromMigDeviceHandle(Device instance, Device* device) {
  return is_instance(instance) ? at(static_cast<unsigned>(instance->gpu), device) : invalid_argument;
}
NVML Result nvmlDeviceGetGpuInstanceId(Device instance, unsigned* id) {
  if (!is_instance(instance) || !id) return invalid_argument;
  *id = static_cast<unsigned>(instance->instance);
  return success;
}
NVML Result nvmlDeviceGetComputeInstanceId(Device instance, unsigned* id) {
  return is_instance(instance) && id ? (*id = 0, success) : invalid_argument;
}
NVML Result nvmlDeviceGetComputeMode(Device device, unsigned* mode) {
  return fixed(device, sim::nvml_answers().compute_mode, mode);
}
NVML Result nvmlDeviceGetVirtualizationMode(Device device, unsigned* mode) {
  return fixed(device, sim::nvml_answers().virtualization, mode);
}
NVML Result nvmlDeviceGetMPSComputeRunningProcesses_v3(Device device, unsigned* size, ProcessInfo*) {
  return known(device) && size ? (*size = 0, success) : invalid_argument;
}
// No link between devices is simulated: the queries say so, as on a card without.
NVML Result nvmlDeviceGetNvLinkState(Device, unsigned, unsigned*) { return not_supported; }
NVML Result nvmlDeviceGetNvLinkRemoteDeviceType(Device, unsigned, int*) { return not_supported; }
NVML Result nvmlDeviceGetNvLinkRemotePciInfo_v2(Device, unsigned, void*) { return not_supported; }
NVML Result nvmlDeviceGetGpuFabricInfoV(Device, void*) { return not_supported; }
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
