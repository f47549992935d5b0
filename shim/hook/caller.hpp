// Who made the call that could not be served: the libraries on its stack, and where the Python program
// stands.
#pragma once

#include "shim/report/failure.hpp"

namespace tidepool {

// Allocates nothing and takes no lock but the one of the loader's list. For the thread that made the call.
void look_at_caller(report::Failure& failure, report::Name<2048>& python_stack);

}  // namespace tidepool
