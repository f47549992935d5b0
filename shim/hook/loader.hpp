// The dynamic loader's own entries, which ours in platform/ stand in front of.
#pragma once

namespace tidepool {

using OpenFunction = void* (*)(const char*, int);

// libc's own dlopen, found at the first use: another library's constructor may run before ours.
OpenFunction real_dlopen();

}  // namespace tidepool
