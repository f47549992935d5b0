// What compilers put into programs: the registration of their kernels when a library is loaded, tens of
// thousands of calls of it, and the launch.
//
// As the real runtime does, an image is given to the driver when the first of its kernels is launched, so
// that kernels occupy their streams here too. They compute nothing.
#include <map>
#include <mutex>
#include <unordered_map>

#include "driver.hpp"

#define CUDART extern "C" __attribute__((visibility("default")))

namespace {

struct Launch {
  unsigned grid[3], block[3];
  unsigned long shared;
  void* stream;
};
thread_local Launch pending;

struct Image {
  const void* data = nullptr;
  std::map<CUcontext, CUmodule> modules;  // loaded where one of its kernels was launched
};

struct Kernel {
  Image* image = nullptr;
  const char* name = nullptr;  // in the library that registered it
  std::map<CUcontext, CUfunction> functions;
};

struct Registered {
  std::mutex mutex;
  std::unordered_map<const void*, Kernel> kernels;  // by their address on the host
};

// Never destroyed: libraries unregister when the process ends.
Registered& registered() {
  static auto* const instance = new Registered;
  return *instance;
}

CUresult find_function(Kernel& kernel, CUfunction* function) {
  using cudart::driver;
  CUcontext context = nullptr;
  if (const CUresult result = driver().ctx_get_current(&context)) return result;
  if (const auto known = kernel.functions.find(context); known != kernel.functions.end()) {
    *function = known->second;
    return CUDA_SUCCESS;
  }
  CUmodule& module = kernel.image->modules[context];
  if (!module)
    if (const CUresult result = driver().module_load_data(&module, kernel.image->data)) return result;
  if (const CUresult result = driver().module_get_function(function, module, kernel.name)) return result;
  kernel.functions[context] = *function;
  return CUDA_SUCCESS;
}

struct Dim {
  unsigned x, y, z;
};

int launch(const void* host_function, Dim grid, Dim block, void** arguments, unsigned long shared,
           CUstream stream) {
  using namespace cudart;
  if (const int error = start_context()) return keep_error(error);
  CUfunction function = nullptr;
  {
    const std::lock_guard hold(registered().mutex);
    const auto kernel = registered().kernels.find(host_function);
    constexpr int invalid_device_function = 98;
    if (kernel == registered().kernels.end()) return keep_error(invalid_device_function);
    if (const CUresult result = find_function(kernel->second, &function)) return keep_error(result);
  }
  return keep_error(driver().launch_kernel(function, grid.x, grid.y, grid.z, block.x, block.y, block.z,
                                           static_cast<unsigned>(shared), stream, arguments, nullptr));
}

// cudaLaunchConfig_t
struct Configuration {
  Dim grid, block;
  unsigned long shared;
  CUstream stream;
};

}  // namespace

// The compiler's wrapper: a magic number, a version, and where the image is.
struct FatBinary {
  int magic, version;
  const void* data;
};

CUDART void** __cudaRegisterFatBinary(FatBinary* binary) {
  return reinterpret_cast<void**>(new Image{binary->data, {}});
}
CUDART void __cudaRegisterFatBinaryEnd(void**) {}
CUDART void __cudaUnregisterFatBinary(void**) {}  // other threads may be launching; the process ends anyway
CUDART void __cudaRegisterFunction(void** image, const char* host_function, char*, const char* name, int,
                                   void*, void*, void*, void*, int*) {
  const std::lock_guard hold(registered().mutex);
  registered().kernels[host_function] = {reinterpret_cast<Image*>(image), name, {}};
}
CUDART void __cudaRegisterVar(void**, char*, char*, const char*, int, unsigned long, int, int) {}
CUDART void __cudaRegisterManagedVar(void**, void**, char*, const char*, int, unsigned long, int, int) {}
CUDART char __cudaInitModule(void**) { return 1; }

CUDART unsigned __cudaPushCallConfiguration(Dim grid, Dim block, unsigned long shared, void* stream) {
  pending = {{grid.x, grid.y, grid.z}, {block.x, block.y, block.z}, shared, stream};
  return 0;
}
CUDART int __cudaPopCallConfiguration(Dim* grid, Dim* block, unsigned long* shared, void* stream) {
  *grid = {pending.grid[0], pending.grid[1], pending.grid[2]};
  *block = {pending.block[0], pending.block[1], pending.block[2]};
  *shared = pending.shared;
  *static_cast<void**>(stream) = pending.stream;
  return 0;
}
CUDART int cudaLaunchKernel(const void* function, Dim grid, Dim block, void** arguments, unsigned long shared,
                            CUstream stream) {
  return launch(function, grid, block, arguments, shared, stream);
}
CUDART int cudaLaunchKernelExC(const Configuration* how, const void* function, void** arguments) {
  return launch(function, how->grid, how->block, arguments, how->shared, how->stream);
}
CUDART int cudaFuncSetAttribute(const void*, int, int) { return 0; }
// Runtime 13 launches by handle; the handle need only be one.
CUDART int __cudaGetKernel(void** kernel, const void* function) {
  *kernel = const_cast<void*>(function);
  return 0;
}
CUDART int __cudaLaunchKernel(void* kernel, Dim grid, Dim block, void** arguments, unsigned long shared,
                              CUstream stream) {
  return launch(kernel, grid, block, arguments, shared, stream);
}

// What both runtimes have first in the struct; libraries divide work by the number of threads.
struct FunctionAttributes {
  unsigned long shared_bytes, constant_bytes, local_bytes;
  int threads, registers, ptx_version, binary_version, cache_mode, dynamic_shared_bytes, carve_out;
};
CUDART int cudaFuncGetAttributes(FunctionAttributes* out, const void*) {
  *out = {0, 0, 0, 1024, 32, 90, 90, 0, 48 << 10, -1};
  return 0;
}
CUDART int cudaFuncSetCacheConfig(const void*, int) { return 0; }
CUDART int cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void*, int,
                                                                  unsigned long, unsigned) {
  *blocks = 2;
  return 0;
}
CUDART int cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void*, int, unsigned long) {
  *blocks = 2;
  return 0;
}
