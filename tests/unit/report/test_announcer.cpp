// Which series of refusals becomes a screen, and when.
#include <atomic>
#include <catch2/catch.hpp>
#include <string>
#include <thread>
#include <vector>

#include "shim/report/announcer.hpp"
#include "tests/unit/report/failures.hpp"

using namespace tidepool;
using namespace tidepool::report;
using namespace tidepool::test;

namespace {

struct Heard {
  std::vector<std::string> screens, notes;
  Announcer::Means means() {
    return {.ask_machine = {},
            .start_thread = nullptr,
            .show = [this](std::string_view text) { screens.emplace_back(text); },
            .note = [this](std::string_view text) { notes.emplace_back(text); },
            .shown = {}};
  }
};

Failure asked(Bytes bytes) {
  Failure failure = refused("cuMemCreate", bytes);
  failure.free = kGiB;
  answer(failure, 79 * kGiB);
  list(failure, 7, 79 * kGiB, "python serve.py");
  return failure;
}

bool start_thread(const char*, void (*body)(void*), void* argument) {
  std::thread(body, argument).detach();
  return true;
}

}  // namespace

TEST_CASE("a series that ends well is a note and no screen") {
  Heard heard;
  Announcer announcer(heard.means(), "");
  for (Bytes bytes : {60 * kGiB, 54 * kGiB, 48 * kGiB}) announcer.refused(asked(bytes), "", false);
  CHECK(announcer.open());
  announcer.served(0, 43 * kGiB);
  CHECK_FALSE(announcer.open());
  announcer.flush(true);
  CHECK(heard.screens.empty());
  CHECK(heard.notes.size() == 1);
}

TEST_CASE("a program that ends well has no screen, whatever it was refused") {
  Heard heard;
  Announcer announcer(heard.means(), "");
  announcer.refused(asked(8 * kGiB), "", false);
  announcer.flush(false);
  CHECK(heard.screens.empty());
  REQUIRE(heard.notes.size() == 1);
  CHECK(heard.notes[0].find("other_processes") != std::string::npos);
}

TEST_CASE("a small block that is served does not end a series, nor one on another device") {
  Heard heard;
  Announcer announcer(heard.means(), "");
  announcer.refused(asked(8 * kGiB), "", false);
  announcer.served(0, kMiB);
  announcer.served(1, 8 * kGiB);
  CHECK(announcer.open());
  announcer.flush(true);
  REQUIRE(heard.screens.size() == 1);
}

TEST_CASE("the screen speaks of the smallest request, and names the first") {
  Heard heard;
  Announcer announcer(heard.means(), "");
  for (Bytes bytes : {60 * kGiB, 30 * kGiB, 2 * kGiB, 60 * kGiB}) announcer.refused(asked(bytes), "", false);
  announcer.flush(true);
  REQUIRE(heard.screens.size() == 1);
  CHECK(heard.screens[0].find("asked     2.00 GiB; tried first: 60.00 GiB; refused 4 times") !=
        std::string::npos);
}

TEST_CASE("what was told once is counted from then on, another cause is told") {
  Heard heard;
  Announcer announcer(heard.means(), "");
  for (int i = 0; i < 3; ++i) {
    announcer.refused(asked(8 * kGiB), "", true);
    announcer.flush(true);
  }
  CHECK(heard.screens.size() == 1);
  CHECK(announcer.counted() == 2);
  announcer.refused(refused("cuMemAlloc_v2", 100 * kGiB), "", true);
  CHECK(heard.screens.size() == 2);
  CHECK(announcer.diagnoses().size() == 2);
}

TEST_CASE("without a call or an end, a thread shows the screen within a second, with what the machine says") {
  static std::atomic<int> shown;
  static std::atomic<bool> named;
  shown = 0;
  Announcer::Means means;
  means.start_thread = &start_thread;
  means.ask_machine = [](const Failure&, MachineView& view) { view = asked(kGiB).machine; };
  means.show = [](std::string_view text) {
    named = text.find("pid 7") != std::string_view::npos;
    ++shown;
  };
  // Its thread may outlive the test.
  Announcer& announcer = *new Announcer(means, "");
  Failure failure = refused("cuMemCreate", 8 * kGiB);
  failure.free = kGiB;
  const auto begin = std::chrono::steady_clock::now();
  announcer.refused(failure, "", false);
  CHECK(shown == 0);
  while (shown == 0 && std::chrono::steady_clock::now() - begin < std::chrono::seconds(5))
    std::this_thread::yield();
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(1));
  CHECK(shown == 1);
  CHECK(named);
}

TEST_CASE("several threads that fail at once have one screen") {
  Heard heard;
  Announcer announcer(heard.means(), "");
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&] {
      for (int round = 0; round < 100; ++round) announcer.refused(asked(8 * kGiB), "", round == 50);
    });
  for (std::thread& thread : threads) thread.join();
  announcer.flush(true);
  CHECK(heard.screens.size() == 1);
}
