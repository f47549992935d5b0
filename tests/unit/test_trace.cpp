// What a recorder writes, a reader finds: from threads, when the file is full, when the process is killed;
// and a file that is none, or not whole, is told apart. A process records once, so each recording is a
// child's.
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <catch2/catch.hpp>

#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include "shim/trace/reader.hpp"
#include "shim/trace/recorder.hpp"
#include "tests/support/process.hpp"

using namespace tidepool;
using trace::Action;
using trace::Family;
using trace::Trace;

namespace {

constexpr std::size_t kInChunk = std::tuple_size_v<decltype(trace::Chunk::records)>;

// How it ended, as waitpid says.
int in_child(const std::function<void()>& body) {
  const pid_t child = fork();
  if (child == 0) {
    body();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

std::string start(const std::string& path, Bytes most = kGiB) {
  trace::Options options{
      .path = path, .mode = "ondemand", .command = {"python", "train.py", ""}, .most = most};
  const std::string problem = trace::start(options);
  return problem.empty() ? options.path : "problem: " + problem;
}

void allocate(std::uint64_t address, Bytes size = 512, std::uint64_t stream = 0, Bytes held = 0) {
  trace::write({.action = Action::allocate,
                .family = Family::stream_ordered,
                .source = trace::Source::arena,
                .device = 1,
                .address = address,
                .size = size,
                .stream = stream,
                .owner = 7,
                .held = held},
               trace::now());
}

void free_block(std::uint64_t address) {
  trace::write({.action = Action::free, .device = 1, .address = address, .size = 512}, trace::now());
}

std::string problem_of(const std::string& path) {
  try {
    trace::read(path);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "none";
}

void record(const std::string& path, std::uint64_t events, Bytes most = kGiB) {
  REQUIRE(in_child([&] {
            start(path, most);
            for (std::uint64_t i = 0; i < events; ++i) allocate(i);
            trace::note_end();
          }) == 0);
}

void change(const std::string& path, std::size_t at, char to) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(static_cast<std::streamoff>(at));
  file.put(to);
}

}  // namespace

TEST_CASE("what is recorded is read back: events, their surroundings, devices, command") {
  const test::ScratchFolder scratch;
  const std::string path = scratch.path("trace");
  REQUIRE(in_child([&] {
            start(path);
            trace::add_device(1, "GPU-1", "H100", 80 * kGiB);
            allocate(4096, 100, 5, 2 * kMiB);
            allocate(8192, 200, 6, 4 * kMiB);
            free_block(4096);
            trace::note_end();
          }) == 0);
  const Trace read = trace::read(path);
  CHECK(read.mode == "ondemand");
  CHECK(read.command == std::vector<std::string>{"python", "train.py", ""});
  CHECK(read.ended > 0);
  CHECK(read.missing == 0);
  CHECK(read.failure == 0);
  REQUIRE(read.devices.size() == 1);
  CHECK(read.devices[0].ordinal == 1);
  CHECK(read.devices[0].uuid == "GPU-1");
  CHECK(read.devices[0].name == "H100");
  CHECK(read.devices[0].total == 80 * kGiB);
  REQUIRE(read.events.size() == 3);
  const trace::TracedEvent& second = read.events[1];
  CHECK(second.action == Action::allocate);
  CHECK(second.family == Family::stream_ordered);
  CHECK(second.source == trace::Source::arena);
  CHECK(second.device == 1);
  CHECK(second.address == 8192);
  CHECK(second.size == 200);
  CHECK(second.stream == 6);
  CHECK(second.owner == 7);
  CHECK(second.held == 4 * kMiB);
  CHECK(read.events[2].action == Action::free);
  CHECK(read.events[2].owner == 0);
  CHECK(read.events[2].held == 0);
  for (std::size_t i = 1; i < read.events.size(); ++i) CHECK(read.events[i - 1].time <= read.events[i].time);
}

TEST_CASE("threads record side by side, and nothing is lost or mixed up") {
  const test::ScratchFolder scratch;
  constexpr std::uint64_t kThreads = 4, kEach = 3 * kInChunk + 5;
  REQUIRE(in_child([&] {
            start(scratch.path("trace"));
            std::vector<std::thread> threads;
            for (std::uint64_t thread = 0; thread < kThreads; ++thread)
              threads.emplace_back([thread] {
                for (std::uint64_t i = 0; i < kEach; ++i)
                  allocate(thread * kEach + i, thread + 1, thread + 1, i / 7);
              });
            for (std::thread& thread : threads) thread.join();
          }) == 0);
  const Trace read = trace::read(scratch.path("trace"));
  std::set<std::uint64_t> addresses;
  std::map<std::uint64_t, std::set<std::uint32_t>> thread_of_stream;
  bool right = true;
  for (const trace::TracedEvent& event : read.events) {
    addresses.insert(event.address);
    thread_of_stream[event.stream].insert(event.thread);
    right = right && event.size == event.stream && event.address / kEach + 1 == event.stream &&
            event.held == event.address % kEach / 7;
  }
  CHECK(right);
  CHECK(read.events.size() == kThreads * kEach);
  CHECK(addresses.size() == kThreads * kEach);
  CHECK(thread_of_stream.size() == kThreads);
  for (const auto& [stream, threads] : thread_of_stream) CHECK(threads.size() == 1);
}

TEST_CASE(
    "a full trace keeps the newest events, is no larger than its bound, and says how many are missing") {
  const test::ScratchFolder scratch;
  constexpr std::uint64_t kEvents = 10 * kInChunk;
  record(scratch.path("trace"), kEvents, 4 * trace::kChunkSize);
  const Trace read = trace::read(scratch.path("trace"));
  CHECK(std::filesystem::file_size(scratch.path("trace")) == trace::kHeaderSize + 4 * trace::kChunkSize);
  REQUIRE(read.events.size() > 3 * (kInChunk - 1));
  CHECK(read.events.back().address == kEvents - 1);
  for (std::size_t i = 1; i < read.events.size(); ++i)
    REQUIRE(read.events[i].address == read.events[i - 1].address + 1);
  CHECK(read.missing >= kEvents - read.events.size());
  CHECK(read.missing <= kEvents - read.events.size() + kInChunk);
}

TEST_CASE("a thread that slept while others went round the file does not write into what is theirs") {
  const test::ScratchFolder scratch;
  REQUIRE(in_child([&] {
            start(scratch.path("trace"), 2 * trace::kChunkSize);
            allocate(1);
            std::thread([] {
              for (std::uint64_t i = 0; i < 3 * kInChunk; ++i) allocate(100 + i);
            }).join();
            allocate(2);
          }) == 0);
  const Trace read = trace::read(scratch.path("trace"));
  CHECK(read.events.back().address == 2);
  CHECK(read.events.front().address > 100);
}

TEST_CASE("events of a process that is killed by SIGKILL are all there") {
  const test::ScratchFolder scratch;
  const int status = in_child([&] {
    start(scratch.path("trace"));
    for (std::uint64_t i = 0; i < 2 * kInChunk; ++i) allocate(i);
    kill(getpid(), SIGKILL);
  });
  REQUIRE(WIFSIGNALED(status));
  const Trace read = trace::read(scratch.path("trace"));
  CHECK(read.ended == 0);
  CHECK(read.events.size() == 2 * kInChunk);
}

TEST_CASE("a file that may not grow ends the trace, not the process") {
  const test::ScratchFolder scratch;
  const int status = in_child([&] {
    close(STDERR_FILENO);
    const rlimit most{trace::kHeaderSize + trace::kChunkSize, RLIM_INFINITY};
    setrlimit(RLIMIT_FSIZE, &most);
    start(scratch.path("trace"));
    for (std::uint64_t i = 0; i < 3 * kInChunk; ++i)
      if (trace::on()) allocate(i);
  });
  REQUIRE(status == 0);
  const Trace read = trace::read(scratch.path("trace"));
  CHECK(read.failure == EFBIG);
  CHECK(read.events.size() >= kInChunk - 2);
  CHECK(read.events.size() < kInChunk);
}

TEST_CASE("a descriptor that the program closed and used again is not written to") {
  const test::ScratchFolder scratch;
  REQUIRE(in_child([&] {
            dup2(::open("/dev/null", O_WRONLY), STDERR_FILENO);
            start(scratch.path("trace"));
            usleep(50'000);  // the chunks that are made ahead
            for (int descriptor = 3; descriptor < 64; ++descriptor) close(descriptor);
            for (int i = 0; i < 8; ++i)
              ::open(scratch.path("own" + std::to_string(i)).c_str(), O_RDWR | O_CREAT, 0600);
            for (std::uint64_t i = 0; i < 80 * kInChunk; ++i)
              if (trace::on()) allocate(i);
          }) == 0);
  for (int i = 0; i < 8; ++i) CHECK(std::filesystem::file_size(scratch.path("own" + std::to_string(i))) == 0);
  CHECK(trace::read(scratch.path("trace")).failure == EBADF);
}

TEST_CASE(
    "of two processes that are given one path, the second writes beside it, and an old trace is replaced") {
  const test::ScratchFolder scratch;
  const std::string path = scratch.path("trace");
  record(path, 5);
  REQUIRE(in_child([&] {
            int started[2];
            if (pipe(started) != 0) _exit(2);
            const pid_t second = fork();
            char word = 0;
            if (second == 0) {
              if (read(started[0], &word, 1) != 1) _exit(3);
              const std::string own = start(path);
              allocate(2);
              allocate(3);
              _exit(own == path + "." + std::to_string(getpid()) ? 0 : 1);
            }
            start(path);
            allocate(1);
            if (write(started[1], &word, 1) != 1) _exit(4);
            int status = 0;
            waitpid(second, &status, 0);
            _exit(WEXITSTATUS(status));
          }) == 0);
  CHECK(trace::read(path).events.size() == 1);
  std::size_t beside = 0;
  for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::path(path).parent_path()))
    if (entry.path().string() != path) {
      ++beside;
      CHECK(trace::read(entry.path().string()).events.size() == 2);
    }
  CHECK(beside == 1);
}

TEST_CASE("a path that cannot be a file of its own is refused with a reason") {
  const test::ScratchFolder scratch;
  REQUIRE(in_child([&] {
            for (const std::string path : {scratch.path("no/folder"), std::string("/dev/null")})
              if (!start(path).starts_with("problem: ") || trace::on()) _exit(1);
          }) == 0);
  CHECK(std::filesystem::exists("/dev/null"));
}

TEST_CASE("files that are no trace, cut off or damaged are told apart from traces") {
  const test::ScratchFolder scratch;
  const std::string path = scratch.path("trace");
  CHECK_THAT(problem_of(path), Catch::StartsWith("cannot be read"));
  std::ofstream(path) << "";
  CHECK(problem_of(path) == "is no trace of tidepool");
  std::ofstream(path) << std::string(200'000, 'x');
  CHECK(problem_of(path) == "is no trace of tidepool");

  record(path, 3 * kInChunk);
  REQUIRE(problem_of(path) == "none");
  // A chunk that was being made when the process ended is beyond what counts as written.
  trace::Header header;
  std::ifstream(path).read(reinterpret_cast<char*>(&header), sizeof header);
  std::filesystem::resize_file(path, header.extended - 100);
  CHECK_THAT(problem_of(path), Catch::StartsWith("is cut off: "));
  std::filesystem::resize_file(path, 1000);
  CHECK(problem_of(path) == "is cut off");

  constexpr std::size_t kMarkOfTenth = trace::kHeaderSize + 11 * sizeof(trace::Record) - 1;
  record(path, kInChunk);
  change(path, kMarkOfTenth, 9);
  CHECK(problem_of(path) == "is damaged: chunk 0 has a hole");
  record(path, kInChunk);
  change(path, kMarkOfTenth - 7, 99);
  CHECK(problem_of(path) == "is damaged: chunk 0 has a record that was never written");
  record(path, 1);
  change(path, offsetof(trace::Header, version), 9);
  CHECK_THAT(problem_of(path), Catch::Contains("version 9"));
  record(path, 1);
  change(path, offsetof(trace::Header, byte_order), 1);
  CHECK(problem_of(path) == "is of a machine with another byte order");
}
