// What an operation on a stream is: what it does to memory, or the host function it calls, and what
// the detector must know of it. Plain data, copied into graphs and from there into streams.
#pragma once
#include <cuda.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace sim {

struct Mark;

struct Touch {
  std::uint64_t base = 0;
  std::uint64_t bytes = 0;
  bool writes = false;
};

struct Work {
  enum class Kind { marker, kernel, foreign_kernel, copy, fill, host };
  Kind kind = Kind::marker;
  const char* name = "";                        // lives for ever
  std::int64_t cost = marker_cost;              // ns of the virtual clock
  std::vector<Touch> touches;                   // all memory it uses, where that is known
  std::function<void(struct Context&)> effect;  // on memory, at its moment; under the driver's lock
  std::function<void(CUresult)> call;           // host function: without the lock, on the driver's thread
  std::shared_ptr<Mark> mark;

  // What only orders others still takes its time, less than a call of the driver does.
  static constexpr std::int64_t marker_cost = 500;
};
using Works = std::vector<Work>;

struct Operation {
  enum class Phase { waiting, scheduled, calling };
  Work work;
  struct Lane* lane = nullptr;
  std::uint64_t ticket = 0;
  std::uint64_t sequence = 0;  // in the order of submission, of all streams
  std::uint64_t lot = 0;       // decides between operations that end together
  std::int64_t earliest = 0;
  std::int64_t end = 0;
  Phase phase = Phase::waiting;
  std::vector<Operation*> needs;  // unfinished ones of other lanes
  std::vector<Operation*> gates;  // those that need this one
};

// A name that stays when the module it came from is gone.
const char* keep_name(const std::string& name);

}  // namespace sim
