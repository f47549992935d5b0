// The interface downward: where a policy gets addresses and physical memory of one device.
// A driver, a replay or a test stands behind it; the engine cannot tell which.
#pragma once

#include "policies/result.hpp"
#include "policies/units.hpp"

namespace tidepool {

// Physical memory comes in pages of kPage bytes, each a unit of its own that can be moved and released
// (cuMemMap: the offset must be zero; cuMemUnmap: no part of a mapping). No call throws or waits for
// the device. Addresses are multiples of kPage.
class Backing {
 public:
  virtual ~Backing() = default;

  // Takes `size` bytes of addresses without memory. Requires: a multiple of kPage.
  virtual Result<Range> reserve(Bytes size) = 0;

  // How much create() could give just now, as far as that can be known without trying; others may take it
  // meanwhile.
  virtual Bytes available() { return kUnlimited; }

  // Puts a new page of memory under `page`, not accessible before enable().
  // Requires: reserved addresses that never had memory.
  virtual Status create(Address page) = 0;

  // Takes the memory of a page to other addresses, not accessible before enable(); it is never the
  // device's meanwhile. Requires: as create(), and as release().
  virtual Status move(Address page, Address to) = 0;

  // Lets the device read and write `range`, made of adjoining pages.
  virtual Status enable(Range range) = 0;

  // Gives the memory of a page back.
  // Requires: the host has seen the device finish all work that could touch it.
  virtual Status release(Address page) = 0;
};

}  // namespace tidepool
