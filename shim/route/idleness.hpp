// When memory that is cached has been of no use for so long that it may go: nobody allocated or freed for a
// while. A program that comes back for it soon after it went is given longer the next time, so that a loop
// that rests between its steps keeps what each of them needs.
//
// Threading: one thread. Knows no clock of its own.
#pragma once

#include <chrono>
#include <cstdint>

#include "policies/units.hpp"

namespace tidepool {

class Idleness {
 public:
  using Time = std::chrono::steady_clock::time_point;
  using Duration = std::chrono::steady_clock::duration;
  static constexpr Duration kShortest = std::chrono::seconds(5);
  static constexpr Duration kLongest = std::chrono::minutes(5);

  // `calls`: allocations and frees so far; `held`: bytes. True: what is cached may go.
  bool look(Time now, std::uint64_t calls, Bytes held);

  // As much went, and so much is still held.
  void gave_back(Bytes size, Bytes held);

  // There is no more to be had before the next call.
  void finished() { finished_ = true; }

  Duration patience() const { return patience_; }

 private:
  void judge(Bytes held);

  Duration patience_ = kShortest;
  std::uint64_t calls_ = 0;
  Time last_call_{};
  bool finished_ = false;
  // Since the last judgement.
  Bytes given_back_ = 0;
  Bytes left_ = 0;      // held after it went
  Duration absence_{};  // of the program, when it came back; 0: it has not
};

}  // namespace tidepool
