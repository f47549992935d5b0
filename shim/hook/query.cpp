// Exported wrappers: questions about memory, and sharing it with other processes.
#include "shim/hook/passage.hpp"

using namespace tidepool;

#pragma GCC visibility push(default)

CUresult cuMemGetInfo(unsigned int* free, unsigned int* total) {
  return forward<Hook::cuMemGetInfo>(free, total);
}
CUresult cuMemGetInfo_v2(size_t* free, size_t* total) {
  return serve<Hook::cuMemGetInfo_v2>(
      [&](Router& router, const Pass& pass) { return router.memory_info(free, pass); }, free, total);
}
CUresult cuMemGetAddressRange(CUdeviceptr_v1* pbase, unsigned int* psize, CUdeviceptr_v1 dptr) {
  return forward<Hook::cuMemGetAddressRange>(pbase, psize, dptr);
}
CUresult cuMemGetAddressRange_v2(CUdeviceptr* pbase, size_t* psize, CUdeviceptr dptr) {
  return serve<Hook::cuMemGetAddressRange_v2, &Router::address_range>(pbase, psize, dptr);
}
CUresult cuPointerGetAttribute(void* data, CUpointer_attribute attribute, CUdeviceptr ptr) {
  return serve<Hook::cuPointerGetAttribute, &Router::pointer_attribute>(data, attribute, ptr);
}
CUresult cuPointerGetAttributes(unsigned int numAttributes, CUpointer_attribute* attributes, void** data,
                                CUdeviceptr ptr) {
  return serve<Hook::cuPointerGetAttributes, &Router::pointer_attributes>(numAttributes, attributes, data,
                                                                          ptr);
}
CUresult cuPointerSetAttribute(const void* value, CUpointer_attribute attribute, CUdeviceptr ptr) {
  return serve<Hook::cuPointerSetAttribute>(
      [&](Router& router, const Pass& pass) { return router.set_pointer_attribute(attribute, ptr, pass); },
      value, attribute, ptr);
}

CUresult cuIpcGetMemHandle(CUipcMemHandle* pHandle, CUdeviceptr dptr) {
  return serve<Hook::cuIpcGetMemHandle>(
      [&](Router& router, const Pass& pass) { return router.export_ipc(dptr, pass); }, pHandle, dptr);
}
CUresult cuIpcOpenMemHandle(CUdeviceptr* pdptr, CUipcMemHandle handle, unsigned int Flags) {
  return forward<Hook::cuIpcOpenMemHandle>(pdptr, handle, Flags);
}
CUresult cuIpcOpenMemHandle_v2(CUdeviceptr* pdptr, CUipcMemHandle handle, unsigned int Flags) {
  return forward<Hook::cuIpcOpenMemHandle_v2>(pdptr, handle, Flags);
}
CUresult cuIpcCloseMemHandle(CUdeviceptr dptr) { return forward<Hook::cuIpcCloseMemHandle>(dptr); }

#pragma GCC visibility pop
