// Whose a block of the arena is, as it is kept in the block's label.
#pragma once

#include "policies/policy.hpp"
#include "shim/ledger/ledger.hpp"
#include "shim/route/pools.hpp"

namespace tidepool {

struct Owner {
  Kind kind = Kind::synchronous;
  std::uint64_t context = 0;  // CUcontext of a synchronous block
  Pool* pool = nullptr;       // of a stream-ordered one
  bool of_share = false;      // taken of the share of JAX's pool

  std::uint64_t packed() const {
    return kind == Kind::synchronous ? context : reinterpret_cast<std::uint64_t>(pool);
  }
  std::uint32_t tag() const {
    return (kind == Kind::stream_ordered ? kOrdered : 0) | (of_share ? kShare : 0);
  }

  static Owner of(const Label& label) {
    const bool ordered = (label.tag & kOrdered) != 0;
    return {.kind = ordered ? Kind::stream_ordered : Kind::synchronous,
            .context = ordered ? 0 : label.owner,
            .pool = ordered ? reinterpret_cast<Pool*>(label.owner) : nullptr,
            .of_share = (label.tag & kShare) != 0};
  }

 private:
  static constexpr std::uint32_t kOrdered = 1;
  static constexpr std::uint32_t kShare = 2;
};

}  // namespace tidepool
