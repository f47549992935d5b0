// Start and end of the driver, its version, error texts, and the statistics written at exit.
#include <atomic>
#include <fstream>
#include <nlohmann/json.hpp>

#include "attendants.hpp"
#include "call.hpp"
#include "cost.hpp"
#include "detector.hpp"
#include "entries.hpp"
#include "errors.hpp"
#include "faults.hpp"
#include "layout.hpp"
#include "rules.hpp"
#include "settings.hpp"
#include "state.hpp"

namespace sim {
namespace {

// At exit only the calls are refused; nothing is torn down, since other threads may still be inside. A
// destructor and not atexit: ThreadSanitizer's atexit forgets which library asked, and calls the function
// when that has long been closed.
struct End {
  ~End() {
    if (life() == Life::running) set_life(Life::over);
  }
};

void write_stats() {
  if (settings().stats.empty()) return;
  // A child of a fork keeps its hands off its parent's file.
  if (life() == Life::orphaned && settings().stats.find("%p") == std::string::npos) return;
  const std::lock_guard lock(driver_mutex());
  nlohmann::ordered_json stats = {{"pid", getpid()}, {"devices", nlohmann::json::array()}};
  for (const auto& device : state().devices) {
    const Machine& machine = Machine::instance();
    stats["devices"].push_back({{"ordinal", device->ordinal()},
                                {"total_bytes", device->total()},
                                {"used_bytes", machine.own(device->partition())},
                                {"peak_bytes", machine.own_peak(device->partition())}});
  }
  auto& calls = stats["calls"] = nlohmann::ordered_json::object();
  for (int i = 0; i < static_cast<int>(Name::count_); ++i)
    if (const auto count = calls_of(static_cast<Name>(i))) calls[name_of(static_cast<Name>(i))] = count;
  stats["violations"] = violations().certain;
  stats["possible_violations"] = violations().possible;
  if (costs_asked()) stats["modelled"] = modelled_costs();
  std::ofstream(expand_path(settings().stats)) << stats.dump(1) << "\n";
}

// Runs when the library is unloaded, which is after the exit handlers of the program.
[[gnu::destructor]] void at_unload() {
  dismiss_attendants();
  write_stats();
}

}  // namespace

CUresult SIM_ENTRY(cuInit)(unsigned int Flags) {
  if (Flags) return CUDA_ERROR_INVALID_VALUE;
  if (life() == Life::orphaned) return CUDA_ERROR_NOT_INITIALIZED;
  if (life() == Life::over) return CUDA_ERROR_DEINITIALIZED;
  const Lock lock;
  if (life() == Life::running) return CUDA_SUCCESS;
  rules();  // refused now, if they are to be
  const std::vector<int> visible = visible_partitions();
  if (visible.empty()) return CUDA_ERROR_NO_DEVICE;
  State& all = state();
  for (int i = 0; i < static_cast<int>(visible.size()); ++i) {
    all.devices.push_back(std::make_unique<Device>(i, visible[static_cast<std::size_t>(i)]));
    all.primary.push_back(std::make_unique<Context>());
    all.primary.back()->device = i;
    all.primary.back()->primary = true;
    all.primary_active.push_back(false);
    all.primary_references.push_back(0);
    all.primary_flags.push_back(0);
  }
  static const End end;
  set_life(Life::running);
  return CUDA_SUCCESS;
}

CUresult SIM_ENTRY(cuDriverGetVersion)(int* driverVersion) {
  if (!driverVersion) return CUDA_ERROR_INVALID_VALUE;
  *driverVersion = driver_version();
  return CUDA_SUCCESS;
}

CUresult SIM_ENTRY(cuGetErrorName)(CUresult error, const char** pStr) {
  if (!pStr) return CUDA_ERROR_INVALID_VALUE;
  *pStr = error_name(error);
  return *pStr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult SIM_ENTRY(cuGetErrorString)(CUresult error, const char** pStr) {
  if (!pStr) return CUDA_ERROR_INVALID_VALUE;
  *pStr = error_text(error);
  return *pStr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

// Private tables of NVIDIA's own libraries: not to be imitated, so there are none.
CUresult SIM_ENTRY(cuGetExportTable)(const void** ppExportTable, const CUuuid* pExportTableId) {
  if (!ppExportTable || !pExportTableId) return CUDA_ERROR_INVALID_VALUE;
  *ppExportTable = nullptr;
  return CUDA_ERROR_NOT_FOUND;
}

CUresult SIM_ENTRY(cuLogsRegisterCallback)(CUlogsCallback callbackFunc, void*,
                                           CUlogsCallbackHandle* callback_out) {
  if (!callbackFunc) return CUDA_ERROR_INVALID_VALUE;
  // The simulator never logs to the application, so there is nothing to keep but the handle.
  static int handle;
  if (callback_out) *callback_out = reinterpret_cast<CUlogsCallbackHandle>(&handle);
  return CUDA_SUCCESS;
}

CUresult SIM_ENTRY(cuLogsUnregisterCallback)(CUlogsCallbackHandle callback) {
  return callback ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult SIM_ENTRY(cuProfilerStart)() { return CUDA_SUCCESS; }
CUresult SIM_ENTRY(cuProfilerStop)() { return CUDA_SUCCESS; }

}  // namespace sim
