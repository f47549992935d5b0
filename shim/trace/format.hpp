// What lies in a trace file, for the recorder that writes it and the reader.
//
// A header, then chunks of records. A chunk belongs to one thread and to one claim, a number that grows: when
// all chunks are used, the one with the lowest claim is taken again, and its records are lost. A record is
// valid if its mark is the claim of its chunk; it is written last, so a process that was killed leaves no
// half record that counts. What changes seldom is in a record of its own, ahead of those it is true for.
//
// Numbers are in the byte order of the machine; a reader of another order finds `byte_order` turned.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace tidepool::trace {

inline constexpr std::array<char, 16> kMagic{"tidepool trace\n"};
inline constexpr std::uint32_t kVersion = 1;
inline constexpr std::uint32_t kByteOrder = 0x01020304;
inline constexpr std::size_t kChunkSize = std::size_t{64} << 10;
inline constexpr std::size_t kHeaderSize = kChunkSize;
inline constexpr std::size_t kMostDevices = 32;

enum class Action : std::uint8_t {
  state = 1,  // see StateRecord
  allocate,
  free,
  refuse,  // an allocation that failed for want of memory
  grow,    // the arena took a page from the driver, at `address`,
  shrink,  // or gave it back
  hold,    // nothing, but what the process holds is another amount
};
inline constexpr auto kLastAction = Action::hold;

enum class Family : std::uint8_t {
  none,
  synchronous,     // cuMemAlloc
  stream_ordered,  // cuMemAllocAsync
  own,             // cuMemCreate: `address` is a number of ours, for a handle has none
};
inline constexpr auto kLastFamily = Family::own;

enum class Source : std::uint8_t {
  none,
  arena,
  driver,
  again,  // the driver's, kept from an earlier use
  lazy,   // managed memory, held where it is touched
};
inline constexpr auto kLastSource = Source::lazy;

struct Record {
  std::uint64_t time = 0;  // ns since Header::monotonic_base
  std::uint64_t address = 0;
  std::uint64_t size = 0;  // as asked for
  Action action{};
  Family family{};
  Source source{};
  std::uint8_t device = 0;
  std::uint32_t mark = 0;  // low half of the chunk's claim
};

// Of all records of the chunk from here to the next one.
struct StateRecord {
  std::uint64_t stream = 0;  // CUstream
  std::uint64_t owner = 0;   // a pool of the shim's, or the CUcontext of a synchronous block
  std::uint64_t held = 0;    // device memory that the process holds on the device
  Action action = Action::state;
  std::array<std::uint8_t, 2> unused{};
  std::uint8_t device = 0;
  std::uint32_t mark = 0;
};
static_assert(sizeof(Record) == 32 && sizeof(StateRecord) == sizeof(Record));

struct Chunk {
  std::uint64_t claim = 0;  // 0: nobody's yet
  std::uint32_t thread = 0;
  std::uint32_t unused = 0;
  std::array<std::uint64_t, 2> spare{};
  std::array<Record, kChunkSize / sizeof(Record) - 1> records;
};
static_assert(sizeof(Chunk) == kChunkSize);

struct DeviceEntry {
  std::int32_t ordinal = 0;
  std::uint32_t unused = 0;
  std::uint64_t total = 0;
  std::array<char, 48> uuid{};
  std::array<char, 64> name{};
};

struct Header {
  std::array<char, 16> magic{};
  std::uint32_t version = 0;
  std::uint32_t byte_order = 0;
  std::uint32_t record_size = 0;
  std::uint32_t chunk_size = 0;
  std::uint64_t capacity = 0;  // chunks
  std::uint64_t pid = 0;
  std::uint64_t monotonic_base = 0;  // CLOCK_MONOTONIC, ns
  std::uint64_t wall_base = 0;       // CLOCK_REALTIME at the same moment, ns
  std::uint64_t claimed = 0;         // chunks, those that were taken again counted again
  std::uint64_t extended = 0;        // bytes that the file was made to have at least
  std::uint64_t ended = 0;           // ns since the base when the process ended; 0: it was killed, or lives
  std::uint64_t failure = 0;         // errno that ended the recording; 0: none did
  std::uint32_t device_count = 0;
  std::uint32_t command_size = 0;
  std::array<char, 32> mode{};
  std::array<DeviceEntry, kMostDevices> devices;
  std::array<char, 32768> command{};  // arguments, each with its null
};
static_assert(sizeof(Header) <= kHeaderSize);

}  // namespace tidepool::trace
