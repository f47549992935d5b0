// A request for memory that could not be had, as plain data: what was asked, and what is known of who has the
// memory. The diagnosis (cause.hpp) and its screen (screen.hpp) are made of it.
//
// Everything is of fixed size, so that it can be filled in and judged when the host has no memory either.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <optional>
#include <string_view>

#include "policies/units.hpp"

namespace tidepool::report {

// Text that is cut where its room ends.
template <std::size_t room>
struct Name {
  char text[room] = "";
  Name() = default;
  Name(std::string_view from) { *this = from; }
  Name& operator=(std::string_view from) {
    const std::size_t size = from.size() < room - 1 ? from.size() : room - 1;
    for (std::size_t i = 0; i < size; ++i) text[i] = from[i];
    text[size] = '\0';
    return *this;
  }
  std::string_view view() const { return text; }
  bool empty() const { return text[0] == '\0'; }
};

// What a call wanted memory for.
enum class Purpose {
  device_memory,  // cuMemAlloc, cuMemCreate, pools: what a program or its framework keeps its data in
  context,        // cuDevicePrimaryCtxRetain, cuCtxCreate
  host_memory,    // cuMemHostAlloc and the like: the GPU is not asked
  driver_needs,   // modules, launches, graphs, events: what the driver takes for itself
};
Purpose purpose_of(std::string_view entry);

enum class RefusedBy { driver, limit, framework_share };

// A process that the driver's management library lists on the device.
struct Holder {
  long pid = 0;
  std::optional<Bytes> bytes;  // nothing: the library does not say
  bool in_sight = false;       // has an entry in this container's /proc
  bool is_self = false;
  Name<24> user;
  Name<96> command;
  std::optional<std::time_t> since;
};

// What the driver's management library (NVML) says of the device, over all processes.
struct MachineView {
  enum class State { not_asked, silent, answered } state = State::not_asked;
  Name<96> problem;  // why it is silent
  Bytes total = 0;
  Bytes used = 0;
  bool lists_processes = false;
  std::array<Holder, 16> holders;  // by size, largest first
  std::size_t listed = 0;          // of holders
  std::size_t unlisted = 0;        // more than there is room for
};

// Which frameworks and libraries of NVIDIA's are on the stack of the call, innermost first.
enum class Part { program, jax, tensorflow, pytorch, cudnn, cublas, cusolver, nccl, cufft };
const char* part_name(Part part);
bool is_library(Part part);  // of NVIDIA's

struct Failure {
  // The call.
  const char* entry = "";  // a literal
  int error = 2;           // CUresult
  RefusedBy refused_by = RefusedBy::driver;
  Bytes requested = 0;  // 0: the call does not say; of several tries, the smallest
  Bytes tried_first = 0;
  std::uint64_t refusals = 1;
  std::optional<Part> framework;
  std::optional<Part> library;
  std::uint64_t allocations_before = 0;

  // The device.
  int device = 0;
  Name<96> device_name;
  Name<48> uuid;
  Bytes total = 0;
  std::optional<Bytes> free;  // as the driver says

  // This process on it.
  long pid = 0;
  const char* mode = "";
  std::optional<Bytes> limit;
  std::optional<Bytes> framework_share;
  Bytes live = 0;           // asked for and not freed
  Bytes cached = 0;         // held by tidepool for reuse, the device being done with it
  Bytes held = 0;           // device memory of this process, as far as it went through tidepool
  Bytes largest_hole = 0;   // in what is cached
  Bytes largest_block = 0;  // one block of the program's: a framework's own pool shows here
  Bytes peak = 0;           // the most that was live

  MachineView machine;

  // Where to look, for the advice.
  Name<256> command;                               // of this process
  const char* (*variable)(const char*) = nullptr;  // its environment
  const char* setting(const char* name) const {
    const char* value = variable == nullptr ? nullptr : variable(name);
    return value == nullptr || *value == '\0' ? nullptr : value;
  }

  // As the driver says, else as its management library does.
  std::optional<Bytes> known_free() const;
  // What others hold: by NVML, else by what the driver says is not free and is not ours.
  Bytes held_by_others() const;
  // The part of it that no listed process explains.
  Bytes unattributed() const;
};

}  // namespace tidepool::report
