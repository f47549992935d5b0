// Names and visibility of devices; see layout.hpp.
#include "layout.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>

#include "settings.hpp"

namespace sim {
namespace {

Uuid uuid(const char* text, int number) {
  Uuid result{};
  std::memcpy(result.data(), text, 15);
  result[15] = static_cast<unsigned char>('a' + number);
  return result;
}

// The partition that one item of CUDA_VISIBLE_DEVICES names, or -1.
int find(const std::string& item) {
  if (!item.empty() && item.find_first_not_of("0123456789") == std::string::npos && item.size() < 4) {
    const int gpu = std::atoi(item.c_str());
    return gpu < gpus() ? gpu * instances_of_gpu() : -1;
  }
  constexpr std::size_t prefix = 4;
  for (int partition = 0; partition < gpus() * instances_of_gpu(); ++partition)
    for (const std::string& name :
         {uuid_text("GPU-", gpu_uuid(gpu_of(partition))), uuid_text("MIG-", partition_uuid(partition))})
      if (item.size() > prefix && name.rfind(item, 0) == 0) return partition;
  return -1;
}

}  // namespace

int gpus() { return settings().devices; }
int instances_of_gpu() { return settings().instances ? settings().instances : 1; }
bool cut_into_instances() { return settings().instances > 0; }
std::uint64_t partition_memory() { return settings().memory / static_cast<unsigned>(instances_of_gpu()); }

Uuid gpu_uuid(int gpu) { return uuid("tidepool-sim-gp", gpu); }
Uuid partition_uuid(int partition) {
  return cut_into_instances() ? uuid("tidepool-sim-mi", partition) : gpu_uuid(partition);
}

std::string uuid_text(const char* prefix, const Uuid& uuid) {
  std::string text = prefix;
  for (std::size_t i = 0; i < uuid.size(); ++i) {
    char byte[4];
    std::snprintf(byte, sizeof byte, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", uuid[i]);
    text += byte;
  }
  return text;
}

std::vector<int> visible_partitions() {
  std::vector<int> visible;
  if (const char* listed = std::getenv("CUDA_VISIBLE_DEVICES")) {
    std::istringstream items(listed);
    for (std::string item; std::getline(items, item, ',');) {
      item.erase(0, item.find_first_not_of(' '));
      item.erase(item.find_last_not_of(' ') + 1);
      const int partition = find(item);
      if (partition < 0) break;
      if (std::count(visible.begin(), visible.end(), partition)) return {};
      visible.push_back(partition);
    }
  } else {
    for (int gpu = 0; gpu < gpus(); ++gpu) visible.push_back(gpu * instances_of_gpu());
  }
  if (cut_into_instances() && visible.size() > 1) visible.resize(1);
  return visible;
}

}  // namespace sim
