// The share of a device at which JAX's own pool would have stopped. The driver's pool, which the shim told
// JAX to use instead, has no end of its own (measured: 80 of 80 GiB where JAX's pool stops at 60), while
// JAX goes on reporting the share as its bytes_limit and leaves the rest to cuDNN, cuBLAS and others.
//
// A soft limit: it holds for what JAX asks of that pool, not for what the process holds, nor for the
// memory that other libraries of the process ask for. TIDEPOOL_LIMIT is the hard one.
//
// Threading: any thread, no lock.
#pragma once

#include "shim/ledger/account.hpp"

namespace tidepool {

class PoolShare {
 public:
  void set(Bytes size) { share_.set_limit(size); }
  bool limited() const { return share_.limit() != kUnlimited; }
  Bytes size() const { return share_.limit(); }
  // As Account: `size` of the share, or nothing and false.
  bool take(Bytes size) { return share_.take(size); }
  void give_back(Bytes size) { share_.give_back(size); }
  Bytes left() const { return share_.left(); }

 private:
  Account share_;
};

}  // namespace tidepool
