// Exported wrappers: loading code. The driver takes device memory for it, also at the first look at a
// function where it loads lazily: when there is none, what we cache is handed back and it is asked again.
#include "shim/hook/passage.hpp"

using namespace tidepool;

#pragma GCC visibility push(default)

CUresult cuModuleLoad(CUmodule* module, const char* fname) {
  return forward<Hook::cuModuleLoad>(module, fname);
}
CUresult cuModuleLoadData(CUmodule* module, const void* image) {
  return forward<Hook::cuModuleLoadData>(module, image);
}
CUresult cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned int numOptions,
                            CUjit_option* options, void** optionValues) {
  return forward<Hook::cuModuleLoadDataEx>(module, image, numOptions, options, optionValues);
}
CUresult cuModuleLoadFatBinary(CUmodule* module, const void* fatCubin) {
  return forward<Hook::cuModuleLoadFatBinary>(module, fatCubin);
}
CUresult cuModuleGetFunction(CUfunction* hfunc, CUmodule hmod, const char* name) {
  return forward<Hook::cuModuleGetFunction>(hfunc, hmod, name);
}
CUresult cuModuleGetGlobal(CUdeviceptr_v1* dptr, unsigned int* bytes, CUmodule hmod, const char* name) {
  return forward<Hook::cuModuleGetGlobal>(dptr, bytes, hmod, name);
}
CUresult cuModuleGetGlobal_v2(CUdeviceptr* dptr, size_t* bytes, CUmodule hmod, const char* name) {
  return forward<Hook::cuModuleGetGlobal_v2>(dptr, bytes, hmod, name);
}
CUresult cuLibraryLoadData(CUlibrary* library, const void* code, CUjit_option* jitOptions,
                           void** jitOptionsValues, unsigned int numJitOptions,
                           CUlibraryOption* libraryOptions, void** libraryOptionValues,
                           unsigned int numLibraryOptions) {
  return forward<Hook::cuLibraryLoadData>(library, code, jitOptions, jitOptionsValues, numJitOptions,
                                          libraryOptions, libraryOptionValues, numLibraryOptions);
}
CUresult cuLibraryLoadFromFile(CUlibrary* library, const char* fileName, CUjit_option* jitOptions,
                               void** jitOptionsValues, unsigned int numJitOptions,
                               CUlibraryOption* libraryOptions, void** libraryOptionValues,
                               unsigned int numLibraryOptions) {
  return forward<Hook::cuLibraryLoadFromFile>(library, fileName, jitOptions, jitOptionsValues, numJitOptions,
                                              libraryOptions, libraryOptionValues, numLibraryOptions);
}
CUresult cuLibraryGetModule(CUmodule* pMod, CUlibrary library) {
  return forward<Hook::cuLibraryGetModule>(pMod, library);
}
CUresult cuLibraryGetGlobal(CUdeviceptr* dptr, size_t* bytes, CUlibrary library, const char* name) {
  return forward<Hook::cuLibraryGetGlobal>(dptr, bytes, library, name);
}
CUresult cuLibraryGetManaged(CUdeviceptr* dptr, size_t* bytes, CUlibrary library, const char* name) {
  return forward<Hook::cuLibraryGetManaged>(dptr, bytes, library, name);
}
CUresult cuKernelGetFunction(CUfunction* pFunc, CUkernel kernel) {
  return forward<Hook::cuKernelGetFunction>(pFunc, kernel);
}
CUresult cuFuncLoad(CUfunction function) { return forward<Hook::cuFuncLoad>(function); }

#pragma GCC visibility pop
