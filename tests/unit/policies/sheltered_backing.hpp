// A checked backing whose own notes never lack host memory: a backing throws nothing, so the failures that
// failing_new.hpp orders are for the engine alone.
#pragma once

#include "tests/unit/policies/checked_backing.hpp"
#include "tests/unit/policies/failing_new.hpp"

namespace tidepool::testing {

template <typename Act>
auto sheltered(Act act) {
  const WithMemory shelter;
  return act();
}

struct ShelteredBacking final : Backing {
  explicit ShelteredBacking(Bytes most = 64 * kGiB) : inner(most) {}

  Result<Range> reserve(Bytes size) override {
    return sheltered([&] { return inner.reserve(size); });
  }
  Status create(Address page) override {
    return sheltered([&] { return inner.create(page); });
  }
  Status move(Address page, Address to) override {
    return sheltered([&] { return inner.move(page, to); });
  }
  Status enable(Range range) override {
    return sheltered([&] { return inner.enable(range); });
  }
  Status release(Address page) override {
    return sheltered([&] { return inner.release(page); });
  }

  CheckedBacking inner;
};

}  // namespace tidepool::testing
