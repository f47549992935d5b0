// The GPUs of the machine, whether they are cut into MIG instances, and which of them this process
// may use. Shared by the doubles of the driver and of NVML, which name the same things.
//
// A partition is what has a budget of memory: a GPU, or each instance of one where SIM_MIG cuts it.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace sim {

using Uuid = std::array<unsigned char, 16>;

int gpus();
int instances_of_gpu();  // 1: not cut
bool cut_into_instances();
inline int gpu_of(int partition) { return partition / instances_of_gpu(); }
std::uint64_t partition_memory();  // bytes

Uuid gpu_uuid(int gpu);
Uuid partition_uuid(int partition);                           // of the instance where the GPU is cut
std::string uuid_text(const char* prefix, const Uuid& uuid);  // "GPU-" or "MIG-"

// By CUDA_VISIBLE_DEVICES, in its order: ordinals or UUIDs, which may be shortened, up to the first that
// names nothing. CUDA sees one MIG instance at a time: the first where the variable is not set.
std::vector<int> visible_partitions();

}  // namespace sim
