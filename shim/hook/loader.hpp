// The dynamic loader's own entries, which ours in platform/ stand in front of.
#pragma once

namespace tidepool {

using OpenFunction = void* (*)(const char*, int);

// libc's own dlopen, found at the first use: another library's constructor may run before ours.
OpenFunction real_dlopen();

// The address of libc's own symbol of that name, or null. Takes no lock.
void* libc_symbol(const char* name);

}  // namespace tidepool
