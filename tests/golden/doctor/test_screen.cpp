// The doctor's screen for machines that are made up, to the letter.
#include <catch2/catch.hpp>

#include "shim/cli/doctor/checks.hpp"
#include "shim/cli/doctor/screen.hpp"

using namespace tidepool::cli::doctor;

namespace {

constexpr tidepool::Bytes kGiB = tidepool::Bytes{1} << 30;

Gpu gpu(unsigned index, tidepool::Bytes used) {
  Gpu one;
  one.index = index;
  one.name = "NVIDIA H100 80GB HBM3";
  one.uuid = "GPU-0000000" + std::to_string(index);
  one.minor = index;
  one.memory.value = Memory{80 * kGiB, used, 80 * kGiB - used};
  one.holders.value = std::vector<Holder>{};
  one.compute_mode.value = ComputeMode::shared;
  one.mig.value = false;
  return one;
}

Machine sound_machine() {
  Machine machine;
  machine.driver.version = "580.65.06";
  machine.driver.cuda = 13000;
  machine.driver.gpus = {gpu(0, 0), gpu(1, 0)};
  machine.cuda = {true, "", 0, 2};
  machine.around.kernel_module = true;
  machine.around.nodes = {"nvidia-uvm", "nvidia0", "nvidia1", "nvidiactl"};
  machine.software.tidepool = "0.1.0";
  machine.software.glibc = "2.36";
  machine.software.library = {"/opt/lib/libtidepool.so", ""};
  machine.software.python = "/usr/bin/python3";
  machine.software.frameworks = {{"jax", "0.10.2"}, {"torch", "2.15.0"}};
  return machine;
}

Holder holder(long pid, tidepool::Bytes bytes) {
  Holder one;
  one.pid = pid;
  one.bytes = bytes;
  return one;
}

}  // namespace

TEST_CASE("the screen of a sound machine") {
  CHECK(to_screen(judge(sound_machine()), false) ==
        R"(ok       driver   580.65.06, CUDA 13.0, 2 GPUs
ok       cuda     starts and sees 2 devices
ok       memory   GPU 0 NVIDIA H100 80GB HBM3 (GPU-00000000): 80.0 GiB, 0 B used, 80.0 GiB free
ok       holders  GPU 0: 0 processes listed
ok       memory   GPU 1 NVIDIA H100 80GB HBM3 (GPU-00000001): 80.0 GiB, 0 B used, 80.0 GiB free
ok       holders  GPU 1: 0 processes listed
ok       nodes    /dev/nvidia* are complete
ok       library  tidepool 0.1.0, /opt/lib/libtidepool.so; glibc 2.36
ok       python   /usr/bin/python3: jax 0.10.2, torch 2.15.0
0 problems, 0 warnings
)");
}

TEST_CASE("the screen of a machine where much is amiss") {
  Machine machine = sound_machine();
  machine.driver.gpus[0] = gpu(0, 79 * kGiB);
  Holder seen = holder(4711, 60 * kGiB);
  seen.in_sight = true;
  seen.user = "ada";
  seen.command = "python train.py --batch 64";
  seen.since = 1764525780;
  machine.driver.gpus[0].holders.value = {seen, holder(99, 4 * kGiB)};
  machine.driver.gpus[1].name = "NVIDIA A100-SXM4-40GB";
  machine.driver.gpus[1].mig.value = true;
  machine.around.container = "docker";
  machine.around.memory = {8 * kGiB, 7 * kGiB};
  machine.around.shared_memory = kGiB / 16;
  machine.around.nodes = {"nvidia0", "nvidiactl"};
  machine.around.mps_pipes = "/tmp/mps";
  machine.around.environment = {
      {"CUDA_VISIBLE_DEVICES", ""}, {"CUDA_MPS_PIPE_DIRECTORY", "/tmp/mps"}, {"TIDEPOOL_LIMIT", "8GiB"}};
  machine.cuda.result = 100;
  machine.software.glibc = "2.31";
  CHECK(to_screen(judge(machine), false) ==
        R"(ok       driver           580.65.06, CUDA 13.0, 2 GPUs
problem  cuda             CUDA does not start: error 100, no device is visible
                          -> see visible-devices and nodes, below
problem  visible-devices  CUDA_VISIBLE_DEVICES is set to nothing, which hides every GPU: programs run on the CPU
                          -> unset CUDA_VISIBLE_DEVICES
warning  device-order     the GPUs differ, and CUDA numbers them by speed: its GPU 0 may not be the GPU 0 below
                          -> export CUDA_DEVICE_ORDER=PCI_BUS_ID, or name GPUs by UUID
problem  memory           GPU 0 NVIDIA H100 80GB HBM3 (GPU-00000000): 80.0 GiB, 79.0 GiB used, 1.0 GiB free: what starts here runs out of memory
                          -> wait for the processes below, or end them
warning  holders          GPU 0: 2 processes listed; 15.0 GiB held outside this container, or by processes that NVML does not list here
                            PID   USER  MiB    SINCE             COMMAND
                            4711  ada   61440  2025-11-30 18:03  python train.py --batch 64
                            99    ?     4096   ?                 (not visible here: another container's, or gone)
                          -> look on the host: nvidia-smi and fuser -v /dev/nvidia*, as root
problem  mig              GPU 1: MIG is on and there is no instance: CUDA finds no device on it
                          -> nvidia-smi mig -cgi PROFILE -C, or turn it off: nvidia-smi -mig 0
problem  nodes            missing: /dev/nvidia-uvm, /dev/nvidia1
                          -> start the container with --gpus all, or add them with --device
warning  mps              CUDA_MPS_PIPE_DIRECTORY=/tmp/mps has no control daemon: programs run without MPS
                          -> nvidia-cuda-mps-control -d, or unset the variable
warning  container        docker; host memory limited to 8.0 GiB, 1.0 GiB left: loading a framework and pinning memory may get a program killed
                          -> give it more (docker run --memory, resources.limits.memory, sbatch --mem)
warning  shared-memory    /dev/shm is 64.0 MiB: NCCL and data loaders fail without more
                          -> docker run --shm-size=8g, or --ipc=host
ok       library          tidepool 0.1.0, /opt/lib/libtidepool.so; glibc 2.31
warning  namespaces       drivers loaded by dlmopen cannot be seen here: tidepool run --audit needs glibc 2.35 or later, this is 2.31
warning  preload          TIDEPOOL_LIMIT is set and libtidepool.so is not in LD_PRELOAD: it has no effect on programs that are not started by tidepool run (a container takes variables only by -e, and needs the library inside)
                          -> tidepool run -- COMMAND, behind sudo, ssh or docker exec
ok       python           /usr/bin/python3: jax 0.10.2, torch 2.15.0
5 problems, 7 warnings
)");
}

TEST_CASE("colour is around the verdict alone") {
  const std::string screen = to_screen({{Verdict::problem, "driver", "none", "", {}}}, true);
  CHECK(screen == "\033[1;31mproblem  \033[0mdriver  none\n1 problem, 0 warnings\n");
}
