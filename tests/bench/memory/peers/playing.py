"""Plays a recorded trace through whatever allocates, and asks the simulated GPU what the process holds.

For the programs beside it, one for each allocator. What is held is read from outside the allocator: NVML
on a simulated machine sees what the driver gave, whoever keeps it. Its peak is in the simulator's own
summary, so that none is lost between two samples.

Usage of such a program: PROGRAM TRACE OUT     writes {"samples": [[event, live, held]…], …} to OUT
"""

import csv
import ctypes
import json
import sys
from pathlib import Path

MOST_SAMPLES = 2000


def read_trace(path):
    """(allocates, id, size) of each event; sizes as tests/property/traces/README.md says."""
    scale = 4096 if Path(path).name.startswith("minimalloc") else 1
    with open(path, newline="") as file:
        return [(row["op"] == "a", int(row["id"]), int(row["size"]) * scale) for row in csv.DictReader(file)]


def sizes_of(path):
    return sorted({size for allocates, _, size in read_trace(path) if allocates})


class Held:
    """Bytes that the device has given to processes."""

    class Memory(ctypes.Structure):
        _fields_ = [(name, ctypes.c_ulonglong) for name in ("total", "free", "used")]

    def __init__(self):
        self.nvml = ctypes.CDLL("libnvidia-ml.so.1")
        self.device = ctypes.c_void_p()
        self.answer = self.Memory()
        assert self.nvml.nvmlInit_v2() == 0
        assert self.nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(self.device)) == 0

    def __call__(self):
        assert self.nvml.nvmlDeviceGetMemoryInfo(self.device, ctypes.byref(self.answer)) == 0
        return self.answer.used


def play(allocate, free, **notes):
    """allocate(size) gives a block, free(block) takes it. `notes` go into OUT, called if they can be."""
    trace, out = sys.argv[1:3]
    events = read_trace(trace)
    held = Held()
    per_sample = len(events) // MOST_SAMPLES + 1
    samples, blocks, live, most = [], {}, 0, 0
    for at, (allocates, block, size) in enumerate(events):
        if allocates:
            blocks[block] = (allocate(size), size)
            live += size
            most = max(most, live)
        else:
            pointer, size = blocks.pop(block)
            free(pointer)
            live -= size
        if (at + 1) % per_sample == 0 or at + 1 == len(events):
            samples.append((at, most, held()))
            most = live
    for pointer, _ in blocks.values():
        free(pointer)
    blocks.clear()
    notes = {name: note() if callable(note) else note for name, note in notes.items()}
    Path(out).write_text(json.dumps({"samples": samples, "held_at_end": held(), **notes}))
