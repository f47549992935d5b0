// The memory pools that arenas stand for: a device's default pool, and plain ones the application makes. To
// the driver they are empty, so what it says of them is added to.
//
// Threading: any thread. A Pool outlives its handle: its last block may be freed later.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "shim/driver/driver.hpp"
#include "shim/ledger/account.hpp"

namespace tidepool {

struct Pool {
  // Atomic: threads that hold blocks of the pool read these while another ends the pool or shares it.
  std::atomic<CUmemoryPool> handle{nullptr};
  std::atomic<bool> served{false};  // by the device's arena; else by the driver
  std::atomic<bool> by_default{false};
  int device = 0;
  // What the application asked of it and has not freed, bytes. The engine counts that of a default pool.
  Gauge used;
};

class Pools {
 public:
  // The books of `handle`, made at the first question; null stands for the device's current pool. Null: it is
  // not a pool of this device, or the driver does not say.
  Pool* find(CUmemoryPool handle, int device);

  // The application made a pool; `served` says whether an arena can stand for it.
  void created(CUmemoryPool handle, int device, bool served);
  void destroyed(CUmemoryPool handle);
  // From here on the driver serves it.
  void leave_to_driver(CUmemoryPool handle, int device);

 private:
  Pool& add(CUmemoryPool handle, int device, bool served);

  std::mutex lock_;
  std::map<CUmemoryPool, Pool*> pools_;
  std::vector<std::unique_ptr<Pool>> all_;
};

}  // namespace tidepool
