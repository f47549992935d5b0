// For the doubles of NVIDIA's computing libraries: functions that do nothing and answer 0, "success".
//
// Foreign kernels compute nothing here, so a library call that would launch them has nothing to do.
// Answering 0 is right for calls that only prepare or launch; what must give something back (a
// handle, a version) is written out in each library.
#pragma once

#define SIM_API extern "C" __attribute__((visibility("default")))
#define SIM_NOTHING(name) \
  SIM_API int name() { return 0; }
// A question of kind libraryPropertyType: major, minor, patch.
#define SIM_PROPERTY(name)                                                      \
  SIM_API int name(int property, int* value) {                                  \
    *value = property == 0 ? SIM_MAJOR : property == 1 ? SIM_MINOR : SIM_PATCH; \
    return 0;                                                                   \
  }
