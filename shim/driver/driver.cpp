// The one driver of the process.
#include "shim/driver/driver.hpp"

namespace tidepool {

constinit Driver driver;

}  // namespace tidepool
