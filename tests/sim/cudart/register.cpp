// What compilers put into programs: the registration of their kernels when a library is loaded,
// thousands of calls of it, and the launch. Foreign kernels compute nothing, so nothing is kept.
#define CUDART extern "C" __attribute__((visibility("default")))

namespace {

struct Launch {
  unsigned grid[3], block[3];
  unsigned long shared;
  void* stream;
};
thread_local Launch pending;

}  // namespace

struct Dim {
  unsigned x, y, z;
};

CUDART void** __cudaRegisterFatBinary(void*) {
  static void* handle;
  return &handle;
}
CUDART void __cudaRegisterFatBinaryEnd(void**) {}
CUDART void __cudaUnregisterFatBinary(void**) {}
CUDART void __cudaRegisterFunction(void**, const char*, char*, const char*, int, void*, void*, void*, void*,
                                   int*) {}
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
CUDART int cudaLaunchKernel(const void*, Dim, Dim, void**, unsigned long, void*) { return 0; }
CUDART int cudaLaunchKernelExC(const void*, const void*, void**) { return 0; }
CUDART int cudaFuncSetAttribute(const void*, int, int) { return 0; }
// Runtime 13 launches by handle; the handle need only be one.
CUDART int __cudaGetKernel(void** kernel, const void* function) {
  *kernel = const_cast<void*>(function);
  return 0;
}
CUDART int __cudaLaunchKernel(void*, Dim, Dim, void**, unsigned long, void*) { return 0; }

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
