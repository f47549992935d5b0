// What the doctor found, for programs; schema.md describes it.
#include "shim/cli/doctor/as_json.hpp"

#include <nlohmann/json.hpp>

namespace tidepool::cli::doctor {
namespace {

using Json = nlohmann::ordered_json;

template <typename Value>
Json or_null(const std::optional<Value>& value) {
  return value ? Json(*value) : Json(nullptr);
}
Json or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

Json memory_json(const Answer<Memory>& answer) {
  if (!answer.value) return {{"problem", answer.problem}};
  return {{"total_bytes", answer.value->total},
          {"used_bytes", answer.value->used},
          {"free_bytes", answer.value->free}};
}

Json holders_json(const Answer<std::vector<Holder>>& answer) {
  if (!answer.value) return {{"problem", answer.problem}};
  Json list = Json::array();
  for (const Holder& holder : *answer.value)
    list.push_back({{"pid", holder.pid},
                    {"used_bytes", or_null(holder.bytes)},
                    {"in_sight", holder.in_sight},
                    {"user", or_null(holder.user)},
                    {"command", or_null(holder.command)},
                    {"started", or_null(holder.since)},
                    {"mps", holder.of_mps}});
  return list;
}

Json unattributed(const Answer<Memory>& memory, const Answer<std::vector<Holder>>& holders) {
  if (!memory.value || !holders.value) return nullptr;
  Bytes explained = 0;
  for (const Holder& holder : *holders.value) {
    if (!holder.bytes) return nullptr;
    explained += *holder.bytes;
  }
  return memory.value->used - std::min(memory.value->used, explained);
}

Json gpu_json(const Gpu& gpu) {
  constexpr const char* kModes[] = {"default", "exclusive_thread", "prohibited", "exclusive_process"};
  Json mode;
  if (gpu.compute_mode.value && static_cast<unsigned>(*gpu.compute_mode.value) < std::size(kModes))
    mode = kModes[static_cast<unsigned>(*gpu.compute_mode.value)];
  Json instances = Json::array();
  for (const Instance& instance : gpu.instances)
    instances.push_back({{"uuid", instance.uuid},
                         {"memory", memory_json(instance.memory)},
                         {"processes", holders_json(instance.holders)},
                         {"unattributed_bytes", unattributed(instance.memory, instance.holders)}});
  return {{"index", gpu.index},
          {"name", gpu.name},
          {"uuid", gpu.uuid},
          {"memory", memory_json(gpu.memory)},
          {"processes", holders_json(gpu.holders)},
          {"unattributed_bytes", unattributed(gpu.memory, gpu.holders)},
          {"compute_mode", mode},
          {"mig", or_null(gpu.mig.value)},
          {"instances", instances}};
}

}  // namespace

Json to_json(const Findings& findings) {
  Json list = Json::array();
  for (const Finding& finding : findings)
    list.push_back({{"verdict", verdict_name(finding.verdict)},
                    {"check", finding.check},
                    {"text", finding.text},
                    {"advice", or_null(finding.advice)},
                    {"details", finding.details}});
  return list;
}

Json to_json(const Machine& machine) {
  Json gpus = Json::array();
  for (const Gpu& gpu : machine.driver.gpus) gpus.push_back(gpu_json(gpu));
  Json frameworks = Json::object();
  for (const auto& [name, version] : machine.software.frameworks) frameworks[name] = version;
  return {
      {"driver", or_null(machine.driver.version)},
      {"driver_problem", or_null(machine.driver.problem)},
      {"cuda", machine.driver.cuda == 0 ? Json(nullptr) : Json(machine.driver.cuda)},
      {"container", or_null(machine.around.container)},
      {"glibc", machine.software.glibc},
      {"library", {{"path", machine.software.library.path}, {"problem", machine.software.library.problem}}},
      {"python", or_null(machine.software.python)},
      {"frameworks", frameworks},
      {"gpus", gpus}};
}

}  // namespace tidepool::cli::doctor
