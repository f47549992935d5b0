// Physical memory of one device by the driver's virtual memory calls: the Backing of the arenas.
#pragma once

#include "policies/backing.hpp"
#include "shim/driver/driver.hpp"

namespace tidepool {

// True when the driver has the calls and the device supports them (vGPU profiles and some older
// systems do not: dmlc/xgboost#12217). Asked by doing, not only by attribute.
bool vmm_supported(int device);

class VmmBacking final : public Backing {
 public:
  explicit VmmBacking(int device) : device_(device) {}

  Result<Range> reserve(Bytes size) override;
  // The handle is released at once and the mapping keeps the memory (cuMemRelease: "the handle can be
  // released while mappings exist"), so an address is all there is to remember.
  Status create(Address page) override;
  // The page's handle is had again by cuMemRetainAllocationHandle.
  Status move(Address page, Address to) override;
  Status enable(Range range) override;
  Status release(Address page) override;

 private:
  int device_;
};

}  // namespace tidepool
