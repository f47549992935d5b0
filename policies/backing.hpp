// The interface downward: where a policy gets addresses and physical memory of one device.
// A driver, a replay or a test stands behind it; the engine cannot tell which.
#pragma once

#include "policies/result.hpp"
#include "policies/units.hpp"

namespace tidepool {

// No call throws.
class Backing {
 public:
  virtual ~Backing() = default;

  // Takes `size` bytes of addresses without memory. Requires: size is a multiple of kPage.
  // The begin of the result is a multiple of kPage.
  virtual Result<Range> reserve(Bytes size) = 0;

  // Puts physical memory under `range`, readable and writable by the device. One commit is one unit:
  // it can only be released whole. Requires: reserved, uncommitted, multiples of kPage.
  virtual Status commit(Range range) = 0;

  // Gives the physical memory of exactly one earlier commit back.
  // Requires: the host has seen the device finish all work that could touch it.
  virtual Status release(Range range) = 0;
};

}  // namespace tidepool
