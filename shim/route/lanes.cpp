// Each thread's lanes.
#include "shim/route/lanes.hpp"

namespace tidepool {

constinit thread_local std::array<Lane, 4> Lanes::mine __attribute__((tls_model("initial-exec"))) = {};

}  // namespace tidepool
