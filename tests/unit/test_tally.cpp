// Counters of threads that come, go, and fork.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <thread>
#include <vector>

#include "shim/base/tally.hpp"

using namespace tidepool;

namespace {

constexpr std::size_t kSlot = tally::kHookSlots;

// Threads that are born, count once and end, as long as this lives.
class Churn {
 public:
  ~Churn() {
    over_ = true;
    for (std::thread& breeder : breeders_) breeder.join();
  }

 private:
  void breed() const {
    while (!over_) std::thread([] { tally::add(kSlot); }).join();
  }
  std::atomic<bool> over_{false};
  std::vector<std::thread> breeders_ = [this] {
    std::vector<std::thread> breeders;
    for (int i = 0; i < 4; ++i) breeders.emplace_back([this] { breed(); });
    return breeders;
  }();
};

// How a child that counts on its first thread, and on none before, ends.
int fork_a_counting_child() {
  int status = 0;
  std::thread([&] {
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(5);
      tally::add(kSlot);
      ::_exit(tally::sum(kSlot) > 0 ? 0 : 1);
    }
    ::waitpid(child, &status, 0);
  }).join();
  return status;
}

}  // namespace

TEST_CASE("What threads counted is summed while they run and after they have ended") {
  const std::uint64_t before = tally::sum(kSlot);
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([] {
      for (int n = 0; n < 1000; ++n) tally::add(kSlot, 2);
    });
  CHECK(tally::sum(kSlot) >= before);
  for (std::thread& thread : threads) thread.join();
  CHECK(tally::sum(kSlot) - before == 16'000);
}

TEST_CASE("A thread counts on in the counters of one that has ended") {
  const tally::Counts* first = nullptr;
  const tally::Counts* second = nullptr;
  for (const tally::Counts** counts : {&first, &second})
    std::thread([counts] {
      tally::add(kSlot);
      *counts = tally::mine;
    }).join();
  REQUIRE(first != nullptr);
  CHECK(first == second);
}

TEST_CASE("A forked child counts and sums, whatever other threads were about to do with their counters") {
  const Churn churn;
  for (int i = 0; i < 300; ++i) REQUIRE(fork_a_counting_child() == 0);
}

TEST_CASE("Slots are given to one asker each, and past the end all get the last") {
  const std::size_t first = tally::reserve(4);
  CHECK(tally::reserve(4) >= first + 4);
  for (std::size_t i = 0; i < tally::kSlots; ++i) tally::reserve(4);
  CHECK(tally::reserve(4) == tally::kSlots - 4);
  CHECK(tally::reserve(4) == tally::kSlots - 4);
}
