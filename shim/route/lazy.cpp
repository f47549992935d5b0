// TIDEPOOL_MODE=managed: a single request for a large part of the device, which a framework makes to carve it
// up itself, is backed where it is touched.
//
// Managed memory answers some questions in its own way (CU_POINTER_ATTRIBUTE_IS_MANAGED; IPC is refused), so
// only such giants are of it.
#include "shim/route/router.hpp"
#include "shim/route/traced.hpp"

namespace tidepool {
namespace {

constexpr Bytes kGiantPart = 4;  // of the device's memory

}  // namespace

// Nothing: it is served as ever.
std::optional<CUresult> Router::allocate_lazily(Device& device, CUdeviceptr* out, Bytes bytes,
                                                std::uint64_t context) {
  if (settings_.mode != Mode::managed || bytes < device.total / kGiantPart || bytes > device.total ||
      !device.backs_lazily())
    return std::nullopt;
  if (!take(device, bytes)) return std::nullopt;
  CUdeviceptr given = 0;
  if (driver.cuMemAllocManaged(&given, bytes, CU_MEM_ATTACH_GLOBAL) != CUDA_SUCCESS) {
    device.account.give_back(bytes);
    return std::nullopt;
  }
  const Record record{.device = device.ordinal, .requested = bytes, .lazy = true, .context = context};
  enter({given}, record);
  device.passed_lazily(bytes);
  traced::passed(device, given, record, trace::Source::lazy);
  *out = given;
  return CUDA_SUCCESS;
}

}  // namespace tidepool
