// The typed table of NVML, the driver's library for questions about the machine. It is opened at run time,
// as a machine without a driver has none; its header is in no package that the build needs, so the few
// types are declared here.
#pragma once

#include <string>

namespace tidepool::peers {

using NvmlDevice = struct NvmlDeviceObject*;

struct NvmlMemory {
  unsigned version;
  unsigned long long total, reserved, free, used;
};
inline constexpr unsigned kNvmlMemoryVersion = sizeof(NvmlMemory) | (2u << 24);

struct NvmlOldMemory {
  unsigned long long total, free, used;
};

struct NvmlProcess {
  unsigned pid;
  unsigned long long used;
  unsigned gpu_instance, compute_instance;
};
inline constexpr unsigned long long kNvmlNotAvailable = ~0ull;

namespace nvml_result {
inline constexpr int kSuccess = 0;
inline constexpr int kNotSupported = 3;
inline constexpr int kNoPermission = 4;
inline constexpr int kInsufficientSize = 7;
inline constexpr int kDriverNotLoaded = 9;
inline constexpr int kFunctionNotFound = 13;
inline constexpr int kBlocked = 17;
inline constexpr int kVersionMismatch = 18;
}  // namespace nvml_result

// "not supported on this device", "error 42"
std::string nvml_error(int result);

// A question that the library does not know is answered as one that has no such function.
template <typename... Parameters>
struct NvmlEntry {
  int (*function)(Parameters...) = nullptr;
  int operator()(Parameters... arguments) const {
    return function == nullptr ? nvml_result::kFunctionNotFound : function(arguments...);
  }
};

template <typename Signature>
struct NvmlEntryOf;
template <typename... Parameters>
struct NvmlEntryOf<int(Parameters...)> {
  using type = NvmlEntry<Parameters...>;
};

struct Nvml {
#define NVML_ENTRY(field, symbol, parameters) NvmlEntryOf<int parameters>::type field;
#define NVML_OLDER(field, symbol)
#include "shim/peers/nvml.def"
#undef NVML_OLDER
#undef NVML_ENTRY
};

// Why the library cannot be opened, in the loader's words; empty: `table` is filled. It stays open.
std::string open_nvml(Nvml& table);

}  // namespace tidepool::peers
