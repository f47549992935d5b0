// Modules, libraries, functions and launches. Foreign code is not read: every function name is
// found, and its kernel computes nothing but takes its time. For the simulator's own see kernels.hpp.
#include "capture.hpp"
#include "entries.hpp"
#include "kernels.hpp"
#include "state.hpp"

namespace sim {
namespace {

void announce(Function& function) {
  state().functions.emplace(reinterpret_cast<CUfunction>(&function), &function);
}

CUresult read_image(const void* image, Module* module) {
  if (!is_own_module(image)) return CUDA_SUCCESS;
  if (!read_own_module(static_cast<const char*>(image), module)) return CUDA_ERROR_INVALID_IMAGE;
  for (const auto& [name, function] : module->functions) announce(*function);
  return CUDA_SUCCESS;
}

CUresult load(CUmodule* handle, const void* image) {
  if (!handle || !image) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock;
  Context* context = nullptr;
  SIM_TRY(current_context(&context));
  auto module = std::make_unique<Module>();
  module->context = context;
  SIM_TRY(read_image(image, module.get()));
  *handle = state().modules.add(std::move(module));
  return CUDA_SUCCESS;
}

// Null if the module is known not to have it.
CUfunction function_of(Module& module, const char* name) {
  if (module.complete && !module.functions.contains(name)) return nullptr;
  auto& function = module.functions[name];
  if (!function) {
    function = std::make_unique<Function>();
    function->module = &module;
    function->context = module.context;
    function->name = name;
    function->kept_name = keep_name(name);
    announce(*function);
  }
  return reinterpret_cast<CUfunction>(function.get());
}

// Libraries belong to no context (cuda.h, cuLibraryLoadData).
Table<Module, CUlibrary>& libraries() {
  static auto* const table = new Table<Module, CUlibrary>;
  return *table;
}

CUresult unload(std::unique_ptr<Module> module) {
  if (!module) return CUDA_ERROR_INVALID_HANDLE;
  for (const auto& [name, function] : module->functions)
    state().functions.erase(reinterpret_cast<CUfunction>(function.get()));
  return CUDA_SUCCESS;
}

Function* find_function(CUfunction handle) {
  const auto at = state().functions.find(handle);
  return at == state().functions.end() ? nullptr : at->second;
}

CUresult function_attribute(int* value, CUfunction_attribute attribute, CUfunction handle) {
  if (!value || attribute < 0 || attribute >= CU_FUNC_ATTRIBUTE_MAX) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock;
  if (!find_function(handle)) return CUDA_ERROR_INVALID_HANDLE;
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK: *value = 1024; break;
    case CU_FUNC_ATTRIBUTE_NUM_REGS: *value = 32; break;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION: *value = 90; break;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES: *value = 232448; break;
    default: *value = 0; break;
  }
  return CUDA_SUCCESS;
}

CUresult check_function(CUfunction handle) {
  const Lock lock;
  return find_function(handle) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult launch(CUfunction handle, const unsigned (&grid)[3], const unsigned (&block)[3], CUstream on,
                void** parameters, void** extra) {
  const Lock lock;
  Stream* stream = nullptr;
  SIM_TRY(find_stream(on, &stream));
  const Function* function = find_function(handle);
  if (!function) return CUDA_ERROR_INVALID_HANDLE;
  std::uint64_t threads = 1;
  for (int i = 0; i < 3; ++i) {
    if (!grid[i] || !block[i]) return CUDA_ERROR_INVALID_VALUE;
    threads *= block[i];
  }
  if (threads > 1024) return CUDA_ERROR_INVALID_VALUE;
  Work work;
  SIM_TRY(kernel_work(*function, parameters, extra, &work));
  return submit(stream, CU_GRAPH_NODE_TYPE_KERNEL, std::move(work));
}

}  // namespace

CUresult SIM_ENTRY(cuModuleLoad)(CUmodule* module, const char* fname) { return load(module, fname); }
CUresult SIM_ENTRY(cuModuleLoadData)(CUmodule* module, const void* image) { return load(module, image); }
CUresult SIM_ENTRY(cuModuleLoadDataEx)(CUmodule* module, const void* image, unsigned int, CUjit_option*,
                                       void**) {
  return load(module, image);
}
CUresult SIM_ENTRY(cuModuleLoadFatBinary)(CUmodule* module, const void* fatCubin) {
  return load(module, fatCubin);
}

CUresult SIM_ENTRY(cuModuleUnload)(CUmodule hmod) {
  const Lock lock;
  return unload(state().modules.remove(hmod));
}

CUresult SIM_ENTRY(cuModuleGetFunction)(CUfunction* hfunc, CUmodule hmod, const char* name) {
  if (!hfunc || !name) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock;
  Module* module = state().modules.find(hmod);
  if (!module) return CUDA_ERROR_INVALID_HANDLE;
  const CUfunction function = function_of(*module, name);
  if (!function) return CUDA_ERROR_NOT_FOUND;
  *hfunc = function;
  return CUDA_SUCCESS;
}

CUresult SIM_ENTRY(cuModuleGetLoadingMode)(CUmoduleLoadingMode* mode) {
  if (!mode) return CUDA_ERROR_INVALID_VALUE;
  *mode = CU_MODULE_LAZY_LOADING;
  return CUDA_SUCCESS;
}

// A global's size stands in its image, which is not read.
CUresult SIM_ENTRY(cuModuleGetGlobal_v2)(CUdeviceptr*, size_t*, CUmodule hmod, const char* name) {
  const Lock lock;
  if (!name) return CUDA_ERROR_INVALID_VALUE;
  return state().modules.find(hmod) ? CUDA_ERROR_NOT_FOUND : CUDA_ERROR_INVALID_HANDLE;
}

CUresult SIM_ENTRY(cuLibraryLoadData)(CUlibrary* library, const void* code, CUjit_option*, void**,
                                      unsigned int, CUlibraryOption*, void**, unsigned int) {
  if (!library || !code) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock;
  auto module = std::make_unique<Module>();
  SIM_TRY(read_image(code, module.get()));
  *library = libraries().add(std::move(module));
  return CUDA_SUCCESS;
}

CUresult SIM_ENTRY(cuLibraryUnload)(CUlibrary library) {
  const Lock lock;
  return unload(libraries().remove(library));
}

CUresult SIM_ENTRY(cuLibraryGetKernel)(CUkernel* pKernel, CUlibrary library, const char* name) {
  if (!pKernel || !name) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock;
  Module* module = libraries().find(library);
  if (!module) return CUDA_ERROR_INVALID_HANDLE;
  const CUfunction function = function_of(*module, name);
  if (!function) return CUDA_ERROR_NOT_FOUND;
  *pKernel = reinterpret_cast<CUkernel>(function);  // cuda.h: a kernel can be launched as a function
  return CUDA_SUCCESS;
}

CUresult SIM_ENTRY(cuKernelGetFunction)(CUfunction* pFunc, CUkernel kernel) {
  if (!pFunc) return CUDA_ERROR_INVALID_VALUE;
  SIM_TRY(check_function(reinterpret_cast<CUfunction>(kernel)));
  *pFunc = reinterpret_cast<CUfunction>(kernel);
  return CUDA_SUCCESS;
}

CUresult SIM_ENTRY(cuKernelGetAttribute)(int* pi, CUfunction_attribute attrib, CUkernel kernel, CUdevice) {
  return function_attribute(pi, attrib, reinterpret_cast<CUfunction>(kernel));
}
CUresult SIM_ENTRY(cuKernelSetAttribute)(CUfunction_attribute, int, CUkernel kernel, CUdevice) {
  return check_function(reinterpret_cast<CUfunction>(kernel));
}
CUresult SIM_ENTRY(cuFuncGetAttribute)(int* pi, CUfunction_attribute attrib, CUfunction hfunc) {
  return function_attribute(pi, attrib, hfunc);
}
CUresult SIM_ENTRY(cuFuncSetAttribute)(CUfunction hfunc, CUfunction_attribute, int) {
  return check_function(hfunc);
}
CUresult SIM_ENTRY(cuFuncSetCacheConfig)(CUfunction hfunc, CUfunc_cache) { return check_function(hfunc); }

CUresult SIM_ENTRY(cuFuncGetModule)(CUmodule* hmod, CUfunction hfunc) {
  if (!hmod) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock;
  const Function* function = find_function(hfunc);
  if (!function) return CUDA_ERROR_INVALID_HANDLE;
  *hmod = reinterpret_cast<CUmodule>(function->module);
  return CUDA_SUCCESS;
}

CUresult SIM_ENTRY(cuFuncGetName)(const char** name, CUfunction hfunc) {
  if (!name) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock;
  const Function* function = find_function(hfunc);
  if (!function) return CUDA_ERROR_INVALID_HANDLE;
  *name = function->name.c_str();
  return CUDA_SUCCESS;
}

CUresult SIM_ENTRY(cuOccupancyMaxActiveBlocksPerMultiprocessor)(int* numBlocks, CUfunction func,
                                                                int blockSize, size_t) {
  if (!numBlocks || blockSize <= 0) return CUDA_ERROR_INVALID_VALUE;
  SIM_TRY(check_function(func));
  *numBlocks = blockSize > 1024 ? 0 : 2048 / blockSize < 32 ? 2048 / blockSize : 32;
  return CUDA_SUCCESS;
}

CUresult SIM_ENTRY(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags)(int* numBlocks, CUfunction func,
                                                                         int blockSize,
                                                                         size_t dynamicSMemSize,
                                                                         unsigned int) {
  return entry::cuOccupancyMaxActiveBlocksPerMultiprocessor(numBlocks, func, blockSize, dynamicSMemSize);
}

CUresult SIM_ENTRY(cuOccupancyMaxPotentialBlockSize)(int* minGridSize, int* blockSize, CUfunction func,
                                                     CUoccupancyB2DSize, size_t, int blockSizeLimit) {
  if (!minGridSize || !blockSize) return CUDA_ERROR_INVALID_VALUE;
  SIM_TRY(check_function(func));
  *blockSize = blockSizeLimit > 0 && blockSizeLimit < 1024 ? blockSizeLimit : 1024;
  *minGridSize = 264;
  return CUDA_SUCCESS;
}

CUresult SIM_ENTRY(cuLaunchKernel)(CUfunction f, unsigned int gridDimX, unsigned int gridDimY,
                                   unsigned int gridDimZ, unsigned int blockDimX, unsigned int blockDimY,
                                   unsigned int blockDimZ, unsigned int, CUstream hStream,
                                   void** kernelParams, void** extra) {
  return launch(f, {gridDimX, gridDimY, gridDimZ}, {blockDimX, blockDimY, blockDimZ}, hStream, kernelParams,
                extra);
}

CUresult SIM_ENTRY(cuLaunchCooperativeKernel)(CUfunction f, unsigned int gridDimX, unsigned int gridDimY,
                                              unsigned int gridDimZ, unsigned int blockDimX,
                                              unsigned int blockDimY, unsigned int blockDimZ, unsigned int,
                                              CUstream hStream, void** kernelParams) {
  return launch(f, {gridDimX, gridDimY, gridDimZ}, {blockDimX, blockDimY, blockDimZ}, hStream, kernelParams,
                nullptr);
}

CUresult SIM_ENTRY(cuLaunchKernelEx)(const CUlaunchConfig* config, CUfunction f, void** kernelParams,
                                     void** extra) {
  if (!config) return CUDA_ERROR_INVALID_VALUE;
  return launch(f, {config->gridDimX, config->gridDimY, config->gridDimZ},
                {config->blockDimX, config->blockDimY, config->blockDimZ}, config->hStream, kernelParams,
                extra);
}

}  // namespace sim
