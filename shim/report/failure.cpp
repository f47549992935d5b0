// What can be said of a failure from its numbers alone.
#include "shim/report/failure.hpp"

#include <algorithm>

namespace tidepool::report {
namespace {

struct Prefix {
  std::string_view text;
  Purpose purpose;
};

// The first that fits decides.
constexpr Prefix kPrefixes[] = {
    {"cuDevicePrimaryCtx", Purpose::context},     {"cuCtxCreate", Purpose::context},
    {"cuGreenCtxCreate", Purpose::context},       {"cuMemHostAlloc", Purpose::host_memory},
    {"cuMemAllocHost", Purpose::host_memory},     {"cuMemHostRegister", Purpose::host_memory},
    {"cuMemAlloc", Purpose::device_memory},       {"cuMemCreate", Purpose::device_memory},
    {"cuArrayCreate", Purpose::device_memory},    {"cuArray3DCreate", Purpose::device_memory},
    {"cuMipmappedArray", Purpose::device_memory},
};

constexpr struct {
  Part part;
  const char* name;
} kParts[] = {{Part::program, "the program"}, {Part::jax, "JAX"},     {Part::tensorflow, "TensorFlow"},
              {Part::pytorch, "PyTorch"},     {Part::cudnn, "cuDNN"}, {Part::cublas, "cuBLAS"},
              {Part::cusolver, "cuSolver"},   {Part::nccl, "NCCL"},   {Part::cufft, "cuFFT"}};

Bytes less(Bytes from, Bytes amount) { return from - std::min(from, amount); }

}  // namespace

Purpose purpose_of(std::string_view entry) {
  for (const Prefix& prefix : kPrefixes)
    if (entry.starts_with(prefix.text)) return prefix.purpose;
  return Purpose::driver_needs;
}

const char* part_name(Part part) {
  for (const auto& known : kParts)
    if (known.part == part) return known.name;
  return "?";
}

bool is_library(Part part) { return part >= Part::cudnn; }

std::optional<Bytes> Failure::known_free() const {
  if (free || machine.state != MachineView::State::answered) return free;
  return less(machine.total, machine.used);
}

Bytes Failure::held_by_others() const {
  if (machine.state == MachineView::State::answered) {
    Bytes own = held;
    for (std::size_t i = 0; i < machine.listed; ++i)
      if (machine.holders[i].is_self) own = std::max(own, machine.holders[i].bytes.value_or(0));
    return less(machine.used, own);
  }
  return free ? less(less(total, *free), held) : 0;
}

Bytes Failure::unattributed() const {
  Bytes rest = held_by_others();
  for (std::size_t i = 0; i < machine.listed; ++i)
    if (!machine.holders[i].is_self) rest = less(rest, machine.holders[i].bytes.value_or(0));
  return rest;
}

}  // namespace tidepool::report
