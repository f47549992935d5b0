// Exported wrappers: launches. The first one of a kernel may load its code, and a graph's may take its
// memory, so they can run out of it; but they are a program's hottest calls. They are counted and
// handed to the driver, and we are heard of only when it has no memory (see pass_first).
#include "shim/hook/passage.hpp"

using namespace tidepool;

#pragma GCC visibility push(default)

CUresult cuLaunch(CUfunction f) { return pass_first<Hook::cuLaunch>(f); }
CUresult cuLaunchGrid(CUfunction f, int grid_width, int grid_height) {
  return pass_first<Hook::cuLaunchGrid>(f, grid_width, grid_height);
}
CUresult cuLaunchGridAsync(CUfunction f, int grid_width, int grid_height, CUstream hStream) {
  return pass_first<Hook::cuLaunchGridAsync>(f, grid_width, grid_height, hStream);
}
CUresult cuLaunchKernel(CUfunction f, unsigned int gridDimX, unsigned int gridDimY, unsigned int gridDimZ,
                        unsigned int blockDimX, unsigned int blockDimY, unsigned int blockDimZ,
                        unsigned int sharedMemBytes, CUstream hStream, void** kernelParams, void** extra) {
  return pass_first<Hook::cuLaunchKernel>(f, gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ,
                                          sharedMemBytes, hStream, kernelParams, extra);
}
CUresult cuLaunchKernel_ptsz(CUfunction f, unsigned int gridDimX, unsigned int gridDimY,
                             unsigned int gridDimZ, unsigned int blockDimX, unsigned int blockDimY,
                             unsigned int blockDimZ, unsigned int sharedMemBytes, CUstream hStream,
                             void** kernelParams, void** extra) {
  return pass_first<Hook::cuLaunchKernel_ptsz>(f, gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY,
                                               blockDimZ, sharedMemBytes, hStream, kernelParams, extra);
}
CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction f, void** kernelParams, void** extra) {
  return pass_first<Hook::cuLaunchKernelEx>(config, f, kernelParams, extra);
}
CUresult cuLaunchKernelEx_ptsz(const CUlaunchConfig* config, CUfunction f, void** kernelParams,
                               void** extra) {
  return pass_first<Hook::cuLaunchKernelEx_ptsz>(config, f, kernelParams, extra);
}
CUresult cuLaunchCooperativeKernel(CUfunction f, unsigned int gridDimX, unsigned int gridDimY,
                                   unsigned int gridDimZ, unsigned int blockDimX, unsigned int blockDimY,
                                   unsigned int blockDimZ, unsigned int sharedMemBytes, CUstream hStream,
                                   void** kernelParams) {
  return pass_first<Hook::cuLaunchCooperativeKernel>(f, gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY,
                                                     blockDimZ, sharedMemBytes, hStream, kernelParams);
}
CUresult cuLaunchCooperativeKernel_ptsz(CUfunction f, unsigned int gridDimX, unsigned int gridDimY,
                                        unsigned int gridDimZ, unsigned int blockDimX, unsigned int blockDimY,
                                        unsigned int blockDimZ, unsigned int sharedMemBytes, CUstream hStream,
                                        void** kernelParams) {
  return pass_first<Hook::cuLaunchCooperativeKernel_ptsz>(f, gridDimX, gridDimY, gridDimZ, blockDimX,
                                                          blockDimY, blockDimZ, sharedMemBytes, hStream,
                                                          kernelParams);
}
CUresult cuLaunchCooperativeKernelMultiDevice(CUDA_LAUNCH_PARAMS* launchParamsList, unsigned int numDevices,
                                              unsigned int flags) {
  return pass_first<Hook::cuLaunchCooperativeKernelMultiDevice>(launchParamsList, numDevices, flags);
}
CUresult cuGraphLaunch(CUgraphExec hGraph, CUstream hStream) {
  return pass_first<Hook::cuGraphLaunch>(hGraph, hStream);
}
CUresult cuGraphLaunch_ptsz(CUgraphExec hGraphExec, CUstream hStream) {
  return pass_first<Hook::cuGraphLaunch_ptsz>(hGraphExec, hStream);
}

#pragma GCC visibility pop
