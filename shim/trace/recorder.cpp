// Events into chunks.
#include "shim/trace/recorder.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <ctime>

#include "shim/base/log.hpp"
#include "shim/base/own_threads.hpp"
#include "shim/trace/file.hpp"

namespace tidepool::trace {

constinit std::atomic<bool> recording{false};

namespace {

constexpr std::uint64_t kAhead = 32;  // chunks that are ready before they are needed
constexpr std::uint64_t kStep = 8;    // by which they are made

// Where a thread writes.
struct Pen {
  Chunk* chunk = nullptr;
  std::size_t next = 0;
  std::uint64_t claim = 0;
  StateRecord state;
};
// initial-exec: another model may call malloc here.
constinit thread_local Pen mine __attribute__((tls_model("initial-exec")));

constinit File file;
constinit std::uint64_t capacity = 0;
constinit std::uint64_t base = 0;
constinit std::atomic<std::uint64_t> ready{0};  // chunks from the first that the file has
constinit std::atomic<int> call{0};             // for the thread that goes ahead; a futex

std::uint64_t read_clock(clockid_t clock) {
  timespec time{};
  ::clock_gettime(clock, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(time.tv_nsec);
}

template <typename Value>
std::atomic_ref<Value> shared(Value& value) {
  return std::atomic_ref<Value>(value);
}

void note_extended(std::uint64_t chunks) {
  const std::uint64_t bytes = kHeaderSize + chunks * kChunkSize;
  const auto extended = shared(file.header().extended);
  std::uint64_t before = extended.load(std::memory_order_relaxed);
  while (before < bytes && !extended.compare_exchange_weak(before, bytes)) {
  }
}

void stop(int error) noexcept {
  if (!recording.exchange(false)) return;
  shared(file.header().failure).store(static_cast<std::uint64_t>(error));
  try {
    log::warn(std::string("TIDEPOOL_TRACE: the trace ends here (") + std::strerror(error) +
              "); the program goes on");
  } catch (...) {
    // There is not even memory to say so.
  }
}

// In a thread of its own: a page of a file that is touched for the first time costs as much as 50 events.
void go_ahead(void*) {
  while (on()) {
    const int before = call.load(std::memory_order_acquire);
    const std::uint64_t wanted = std::min(capacity, shared(file.header().claimed).load() + kAhead);
    for (std::uint64_t from = ready.load(); from < wanted; from = ready.load()) {
      const std::uint64_t count = std::min(kStep, capacity - from);
      if (file.extend(from, count) != 0) return;
      file.touch(from, count);
      note_extended(from + count);
      ready.store(from + count, std::memory_order_release);
    }
    if (ready.load() == capacity) return;
    const timespec pause{0, 250'000'000};
    ::syscall(SYS_futex, &call, FUTEX_WAIT_PRIVATE, before, &pause, nullptr, 0);
    own_threads::exit_if_left_alone();
  }
}

bool take_chunk(Pen& pen) noexcept {
  const std::uint64_t claim = shared(file.header().claimed).fetch_add(1) + 1;
  const std::uint64_t index = (claim - 1) % capacity;
  const std::uint64_t prepared = ready.load(std::memory_order_acquire);
  if (index >= prepared) {
    if (const int error = file.extend(index, 1); error != 0) return stop(error), false;
    note_extended(index + 1);
  }
  if (claim + kAhead / 2 > prepared && prepared < capacity) {
    call.fetch_add(1, std::memory_order_release);
    ::syscall(SYS_futex, &call, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
  }
  Chunk& chunk = file.chunk(index);
  shared(chunk.thread).store(static_cast<std::uint32_t>(::syscall(SYS_gettid)));
  shared(chunk.claim).store(claim, std::memory_order_release);
  pen = Pen{.chunk = &chunk, .next = 0, .claim = claim, .state = {}};
  return true;
}

template <typename Written>
void put(Pen& pen, Written record) {
  Record& place = pen.chunk->records[pen.next++];
  record.mark = 0;
  place = std::bit_cast<Record>(record);
  shared(place.mark).store(static_cast<std::uint32_t>(pen.claim), std::memory_order_release);
}

// A thread that slept while all others went round finds its chunk in other hands.
bool has_room(Pen& pen) {
  return pen.chunk != nullptr && pen.next + 2 <= pen.chunk->records.size() &&
         shared(pen.chunk->claim).load(std::memory_order_relaxed) == pen.claim;
}

template <std::size_t size>
void copy_text(std::string_view text, std::array<char, size>& to) {
  const std::size_t length = std::min(text.size(), size - 1);
  std::memcpy(to.data(), text.data(), length);
  to[length] = '\0';
}

void write_header(const Options& options) {
  Header& header = file.header();
  header.version = kVersion;
  header.byte_order = kByteOrder;
  header.record_size = sizeof(Record);
  header.chunk_size = kChunkSize;
  header.capacity = capacity;
  header.pid = static_cast<std::uint64_t>(::getpid());
  header.monotonic_base = base;
  header.wall_base = read_clock(CLOCK_REALTIME);
  copy_text(options.mode, header.mode);
  std::size_t used = 0;
  for (const std::string& argument : options.command) {
    if (used + argument.size() + 1 > header.command.size()) break;
    std::memcpy(header.command.data() + used, argument.c_str(), argument.size() + 1);
    used += argument.size() + 1;
  }
  header.command_size = static_cast<std::uint32_t>(used);
  header.magic = kMagic;
}

}  // namespace

std::string start(Options& options) {
  capacity = std::max<std::uint64_t>(options.most / kChunkSize, 1);
  if (std::string problem = file.make(options.path, capacity); !problem.empty()) return problem;
  base = read_clock(CLOCK_MONOTONIC) - 1;  // no event is at 0, which stands for none
  write_header(options);
  recording.store(true, std::memory_order_release);
  own_threads::start("tidepool-trace", go_ahead, nullptr);
  return "";
}

void add_device(int ordinal, std::string_view uuid, std::string_view name, Bytes total) noexcept {
  if (!on()) return;
  Header& header = file.header();
  const std::uint32_t count = header.device_count;
  if (count == kMostDevices) return;
  DeviceEntry& device = header.devices[count];
  device.ordinal = ordinal;
  device.total = total;
  copy_text(uuid, device.uuid);
  copy_text(name, device.name);
  shared(header.device_count).store(count + 1, std::memory_order_release);
}

void note_end() noexcept {
  if (on()) shared(file.header().ended).store(now());
}

std::uint64_t now() noexcept { return read_clock(CLOCK_MONOTONIC) - base; }

void write(const Event& event, std::uint64_t time) noexcept {
  Pen& pen = mine;
  if (!has_room(pen) && !take_chunk(pen)) return;
  const auto device = static_cast<std::uint8_t>(event.device);
  if (pen.next == 0 || pen.state.stream != event.stream || pen.state.owner != event.owner ||
      pen.state.held != event.held || pen.state.device != device) {
    pen.state.stream = event.stream;
    pen.state.owner = event.owner;
    pen.state.held = event.held;
    pen.state.device = device;
    put(pen, pen.state);
  }
  put(pen, Record{.time = time,
                  .address = event.address,
                  .size = event.size,
                  .action = event.action,
                  .family = event.family,
                  .source = event.source,
                  .device = device});
}

}  // namespace tidepool::trace
