// One call of an exported entry: counted, admitted or refused, and logged, once each.
//
// Only the generated exports make a Call. The simulator's own functions call each other in
// sim::entry and below, so that the log holds what the application called and nothing else.
#pragma once
#include <cuda.h>

#include <cstdint>
#include <initializer_list>
#include <string>
#include <type_traits>

#define SIM_EXPORT __attribute__((visibility("default")))

namespace sim {

enum class Name : int {
#define SIM_NAME(name) name,
#include "names.inc"
#undef SIM_NAME
  count_
};

const char* name_of(Name name);
std::uint64_t calls_of(Name name);

enum class Gate { always, initialized };

// Where the driver stands in the life of its process.
enum class Life : int {
  fresh,  // no cuInit yet
  running,
  over,      // exit handlers have run: CUDA_ERROR_DEINITIALIZED
  orphaned,  // child of a fork after cuInit: CUDA_ERROR_NOT_INITIALIZED for ever
};
Life life();
void set_life(Life value);

// A parameter as the log writes it. Out-parameters are read after the call, on success only.
struct Argument {
  enum class Kind { value, word_out, int_out, text } kind;
  const char* name;
  std::uint64_t value;
};

template <typename T>
Argument argument(const char* name, T value) {
  if constexpr (std::is_same_v<T, CUdeviceptr*>) {  // also the handles of cuMemCreate: the same type
    return {Argument::Kind::word_out, name, reinterpret_cast<std::uint64_t>(value)};
  } else if constexpr (std::is_same_v<T, std::size_t*>) {
    return {Argument::Kind::word_out, name, reinterpret_cast<std::uint64_t>(value)};
  } else if constexpr (std::is_same_v<T, int*>) {
    return {Argument::Kind::int_out, name, reinterpret_cast<std::uint64_t>(value)};
  } else if constexpr (std::is_same_v<T, CUstream*> || std::is_same_v<T, CUevent*> ||
                       std::is_same_v<T, CUcontext*> || std::is_same_v<T, CUmemoryPool*> ||
                       std::is_same_v<T, CUgraph*> || std::is_same_v<T, CUgraphExec*> ||
                       std::is_same_v<T, CUmodule*> || std::is_same_v<T, CUfunction*>) {
    return {Argument::Kind::word_out, name, reinterpret_cast<std::uint64_t>(value)};
  } else if constexpr (std::is_same_v<T, const char*>) {
    return {Argument::Kind::text, name, reinterpret_cast<std::uint64_t>(value)};
  } else if constexpr (std::is_pointer_v<T>) {
    return {Argument::Kind::value, name, reinterpret_cast<std::uint64_t>(value)};
  } else if constexpr (std::is_integral_v<T> || std::is_enum_v<T>) {
    return {Argument::Kind::value, name, static_cast<std::uint64_t>(value)};
  } else {
    return {Argument::Kind::value, name, 0};  // a struct by value or a float: not written
  }
}

// A void** that gives back one pointer. Others are arrays, perhaps empty, and not followed.
inline Argument pointer_out(const char* name, void** value) {
  return {Argument::Kind::word_out, name, reinterpret_cast<std::uint64_t>(value)};
}

class Call {
 public:
  Call(Name name, Gate gate);
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  // Whether the implementation may run; if not, the refusal is already in result.
  bool open() const { return result == CUDA_SUCCESS; }
  void unsupported();
  // Adds what the call would take on a real driver to the process's modelled time (SIM_COST).
  void charge(std::size_t bytes) const;
  bool logged() const;
  void log(std::initializer_list<Argument> arguments) const;

  CUresult result = CUDA_SUCCESS;

 private:
  Name name_;
  bool unsupported_ = false;
};

// A line of the log for what the detector found, between those of calls.
void log_violation(const std::string& text, bool certain);

// Set while a host function of the application runs: cuda.h forbids it to call the driver.
class CallbackScope {
 public:
  CallbackScope();
  ~CallbackScope();
};

// Set while a _ptsz or _ptds twin runs: the default stream is the thread's own.
class PerThreadScope {
 public:
  PerThreadScope();
  ~PerThreadScope();
  static bool active();
};

}  // namespace sim
