// How a scene measures: the best of many short rounds, since what else runs here can only add.
#pragma once

#include <algorithm>
#include <chrono>
#include <limits>

namespace speed {

using Clock = std::chrono::steady_clock;

inline double ns_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::nano>(Clock::now() - begin).count();
}

// Rounds end when enough were run, or when an operation is so slow that they have taken long enough.
class Rounds {
 public:
  bool more() const { return done_ < kFewest || (done_ < kMost && Clock::now() - begin_ < kLongEnough); }
  void add(double ns) {
    best_ = std::min(best_, ns);
    ++done_;
  }
  double best() const { return best_; }

 private:
  static constexpr int kFewest = 5;
  static constexpr int kMost = 100;
  static constexpr std::chrono::milliseconds kLongEnough{60};

  Clock::time_point begin_ = Clock::now();
  double best_ = std::numeric_limits<double>::infinity();
  int done_ = 0;
};

// Nanoseconds of one call of `body`; the first round, which warms up, does not count.
template <typename Body>
double best_ns(int count, const Body& body) {
  const auto round = [&] {
    const auto begin = Clock::now();
    for (int i = 0; i < count; ++i) body();
    return ns_since(begin) / count;
  };
  round();
  Rounds rounds;
  while (rounds.more()) rounds.add(round());
  return rounds.best();
}

}  // namespace speed
