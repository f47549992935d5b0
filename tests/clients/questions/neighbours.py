"""Two client programs at a time on one GPU, each in a mode of its own, which its environment alone says.

Usage: neighbours.py SIMGPU MODE=PYTHON:PROGRAM ...

SIMGPU starts each anew, for what its Python environment needs. Each program runs to its end and stays until
all have. Then the driver is asked, through NVML, what each of them holds: one line "MODE holds BYTES" for
each, and before it what the program wrote, as "MODE says LINE".
"""

import ctypes
import os
import subprocess
import sys

# The program is none the wiser: it has no arguments, and its output ends before the word.
STAY = """
import runpy, sys
program, sys.argv[1:] = sys.argv[1], []
sys.path.insert(0, program.rpartition("/")[0])
runpy.run_path(program, run_name="__main__")
print("stays", flush=True)
sys.stdin.read()
"""


class Usage(ctypes.Structure):
    _fields_ = [("pid", ctypes.c_uint), ("bytes", ctypes.c_ulonglong), ("gpu", ctypes.c_uint), ("compute", ctypes.c_uint)]


def held():
    """pid -> bytes of device memory, as the driver has it."""
    nvml = ctypes.CDLL("libnvidia-ml.so.1")
    device, usages, count = ctypes.c_void_p(), (Usage * 16)(), ctypes.c_uint(16)
    nvml.nvmlInit_v2()
    assert nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(device)) == 0
    assert nvml.nvmlDeviceGetComputeRunningProcesses_v3(device, ctypes.byref(count), usages) == 0
    return {usage.pid: usage.bytes for usage in usages[: count.value]}


def start(simgpu, choice):
    mode, _, command = choice.partition("=")
    python, _, program = command.partition(":")
    environment = {**os.environ, "TIDEPOOL_MODE": mode}
    process = subprocess.Popen([simgpu, python, "-c", STAY, program], env=environment, text=True,
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    return mode, process


neighbours = [start(sys.argv[1], choice) for choice in sys.argv[2:]]
for mode, process in neighbours:
    for line in iter(process.stdout.readline, "stays\n"):
        if not line:
            sys.exit(f"{mode}: the program ended early")
        print(mode, "says", line, end="")
usage = held()
for mode, process in neighbours:
    print(mode, "holds", usage[process.pid])
for _, process in neighbours:
    process.stdin.close()
sys.exit(max(process.wait() for _, process in neighbours))
