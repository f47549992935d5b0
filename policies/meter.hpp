// A sum over many lanes and its highest mark, exact and yet with no place that all lanes write: threads that
// work on streams of their own would otherwise wait for one cache line (measured: two threads did less
// than one).
//
// Each lane has a ceiling; all ceilings together are the mark. So the sum cannot pass the mark before a
// lane passes its ceiling, and only then are all lanes looked at, and what is left under the mark is
// shared out anew.
//
// Units: bytes. Threads: a lane is covered by its owner's lock, settle() by all of them.
#pragma once

#include "policies/units.hpp"

namespace tidepool {

class Meter {
 public:
  struct Lane {
    Bytes value = 0;
    Bytes ceiling = 0;
    // True: settle() is due.
    bool add(Bytes amount) { return (value += amount) > ceiling; }
    void subtract(Bytes amount) { value -= amount; }
  };

  // Requires: the locks of all lanes. `each_lane(visit)` calls visit(lane) for every one.
  template <typename EachLane>
  void settle(EachLane each_lane) {
    Bytes sum = 0;
    Bytes lanes = 0;
    each_lane([&](const Lane& lane) {
      sum += lane.value;
      ++lanes;
    });
    sum_ = sum;
    if (sum > peak_) peak_ = sum;
    const Bytes share = (peak_ - sum) / lanes;
    each_lane([&](Lane& lane) { lane.ceiling = lane.value + share; });
  }
  // The mark falls to the sum; settle() is due.
  void reset_peak() { peak_ = 0; }

  // As of the last settle().
  Bytes sum() const { return sum_; }
  Bytes peak() const { return peak_; }

 private:
  Bytes sum_ = 0;
  Bytes peak_ = 0;
};

}  // namespace tidepool
