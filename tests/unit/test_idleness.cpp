// How long cached memory is kept for a program that makes no call, by a clock of the test's own.
#include <catch2/catch.hpp>

#include "shim/route/idleness.hpp"

using namespace tidepool;
using namespace std::chrono_literals;

namespace {

constexpr Bytes kHeld = 1000 * kMiB;

// A program that rests between its steps, looked at four times a second.
struct Program {
  // What it found cached at its next step, after a rest.
  Bytes step(Idleness::Duration rest) {
    for (const auto until = now + rest; now < until; now += 250ms)
      if (idleness.look(now, calls, held) && held > 0) {
        idleness.gave_back(held, 0);
        held = 0;
      } else if (held == 0) {
        idleness.finished();
      }
    const Bytes kept = held;
    ++calls;
    held = kHeld;
    idleness.look(now, calls, held);
    return kept;
  }

  Idleness idleness;
  Idleness::Time now{1h};
  std::uint64_t calls = 0;
  Bytes held = 0;
};

}  // namespace

TEST_CASE("what nobody asks for during the shortest patience goes, and not before") {
  Program program;
  program.step(1s);
  CHECK(program.step(Idleness::kShortest - 500ms) == kHeld);
  CHECK(program.step(Idleness::kShortest + 500ms) == 0);
}

TEST_CASE("a loop that rests keeps its memory from the third step on") {
  Program program;
  program.step(1s);
  int lost = 0;
  for (int step = 0; step < 100; ++step) lost += program.step(10s) == 0;
  CHECK(lost <= 2);
}

TEST_CASE("patience ends at five minutes, and comes down when absences are long") {
  Program program;
  for (int step = 0; step < 20; ++step) program.step(program.idleness.patience() + 1s);
  CHECK(program.idleness.patience() == Idleness::kLongest);
  for (int step = 0; step < 10; ++step) program.step(2h);
  CHECK(program.idleness.patience() == Idleness::kShortest);
}

TEST_CASE("a program that comes back for something else has not missed what went") {
  Idleness idleness;
  auto now = Idleness::Time{1h};
  idleness.look(now, 1, kHeld);
  REQUIRE(idleness.look(now += 6s, 1, kHeld));
  idleness.gave_back(kHeld - 10 * kMiB, 10 * kMiB);
  for (std::uint64_t calls = 2; calls < 10; ++calls) idleness.look(now += 1s, calls, 20 * kMiB);
  CHECK(idleness.patience() == Idleness::kShortest);
}

TEST_CASE("a rest in which there is no more to be had is not looked into again") {
  Idleness idleness;
  const auto now = Idleness::Time{1h};
  idleness.look(now, 1, kHeld);
  REQUIRE(idleness.look(now + 6s, 1, kHeld));
  idleness.finished();
  CHECK_FALSE(idleness.look(now + 7s, 1, kHeld));
  idleness.look(now + 8s, 2, kHeld);
  CHECK(idleness.look(now + 14s, 2, kHeld));
}
