// Opens NVML and fills its table.
#include "shim/peers/nvml.hpp"

#include <dlfcn.h>

#include <array>
#include <utility>

namespace tidepool::peers {
namespace {

constexpr std::array<std::pair<int, const char*>, 12> kErrors{{
    {nvml_result::kNotSupported, "not supported on this device"},
    {nvml_result::kNoPermission, "not permitted to this user"},
    {6, "not found"},
    {nvml_result::kDriverNotLoaded, "the driver's kernel module is not loaded"},
    {12, "the library is incomplete"},
    {nvml_result::kFunctionNotFound, "not known to this driver's NVML"},
    {15, "the GPU is lost: it has fallen off the bus"},
    {16, "the GPU needs a reset"},
    {nvml_result::kBlocked, "blocked by the operating system or a control group"},
    {nvml_result::kVersionMismatch, "driver library and kernel module are of different versions"},
    {20, "NVML has too little host memory"},
    {999, "an internal error of the driver"},
}};

template <typename... Parameters>
void resolve(void* library, const char* symbol, NvmlEntry<Parameters...>& entry) {
  if (entry.function == nullptr)
    entry.function = reinterpret_cast<int (*)(Parameters...)>(::dlsym(library, symbol));
}

}  // namespace

std::string nvml_error(int result) {
  for (const auto& [code, meaning] : kErrors)
    if (code == result) return meaning;
  return "NVML error " + std::to_string(result);
}

std::string open_nvml(Nvml& table) {
  void* const library = ::dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* reason = ::dlerror();
    return reason == nullptr ? "unknown error" : reason;
  }
#define NVML_ENTRY(field, symbol, parameters) resolve(library, #symbol, table.field);
#define NVML_OLDER(field, symbol) resolve(library, #symbol, table.field);
#include "shim/peers/nvml.def"
#undef NVML_OLDER
#undef NVML_ENTRY
  return "";
}

}  // namespace tidepool::peers
