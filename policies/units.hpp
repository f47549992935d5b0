// Units of the memory engine: bytes, device addresses, stream keys, and the rounding between them.
#pragma once

#include <compare>
#include <cstdint>
#include <limits>

namespace tidepool {

using Bytes = std::uint64_t;

inline constexpr Bytes kKiB = 1024;
inline constexpr Bytes kMiB = 1024 * kKiB;
inline constexpr Bytes kGiB = 1024 * kMiB;
inline constexpr Bytes kUnlimited = std::numeric_limits<Bytes>::max();

// Smallest unit an arena hands out. CUDA's Best Practices promise 256 bytes; frameworks round to 512.
inline constexpr Bytes kGranule = 512;
// Smallest unit of physical device memory (cuMemGetAllocationGranularity of every known device).
inline constexpr Bytes kPage = 2 * kMiB;

// A device address. Not dereferenceable on the host, so never a pointer.
struct Address {
  std::uint64_t value = 0;
  friend auto operator<=>(const Address&, const Address&) = default;
};

constexpr Address operator+(Address address, Bytes offset) { return {address.value + offset}; }
constexpr Bytes operator-(Address end, Address begin) { return end.value - begin.value; }

struct Range {
  Address begin;
  Bytes size = 0;
  constexpr Address end() const { return begin + size; }
  friend bool operator==(const Range&, const Range&) = default;
};

// Names one stream for as long as it lives; 0 means "no stream": memory of the cuMemAlloc kind.
struct StreamKey {
  std::uint64_t value = 0;
  friend auto operator<=>(const StreamKey&, const StreamKey&) = default;
};
inline constexpr StreamKey kNoStream{};

// Rounds up to a multiple of `unit` (a power of two); kUnlimited when that overflows.
constexpr Bytes round_up(Bytes size, Bytes unit) {
  return size > kUnlimited - (unit - 1) ? kUnlimited : (size + unit - 1) & ~(unit - 1);
}

}  // namespace tidepool
