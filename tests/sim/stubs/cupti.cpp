// The double of CUPTI: JAX asks for its version before it loads its plugin, and falls back to the CPU
// where there is none. It records nothing: a profile of a device that computes nothing is empty.
#include "answer.hpp"

SIM_API int cuptiGetVersion(unsigned* version) {
  *version = SIM_VERSION;
  return 0;
}
SIM_API int cuptiGetResultString(int result, const char** text) {
  *text = result ? "CUPTI_ERROR" : "CUPTI_SUCCESS";
  return 0;
}
SIM_NOTHING(cuptiSubscribe)
SIM_NOTHING(cuptiUnsubscribe)
SIM_NOTHING(cuptiFinalize)
SIM_NOTHING(cuptiEnableCallback)
SIM_NOTHING(cuptiEnableDomain)
SIM_NOTHING(cuptiActivityEnable)
SIM_NOTHING(cuptiActivityDisable)
SIM_NOTHING(cuptiActivityFlushAll)
SIM_NOTHING(cuptiActivityRegisterCallbacks)
