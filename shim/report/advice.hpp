// What to do about a failure: the very variable or command that comes next, computed from what was needed;
// and what would be of no use, so that nobody tries it.
#pragma once

#include "shim/report/cause.hpp"
#include "shim/report/text.hpp"

namespace tidepool::report {

struct Advice {
  Text to_do;   // one line each, what is to be done first comes first; may be empty
  Text no_use;  // one line; may be empty
};

void advise(const Failure& failure, Cause cause, Advice& out);

}  // namespace tidepool::report
