"""The allocators that are driven with the same traces, and how each is started on the simulated GPU.

Nothing here measures: the programs in this folder do, each in a process of its own.
"""

import json
import os
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent


@dataclass
class Peer:
    name: str
    program: str
    client: str = ""  # the Python environment of this name; none: any Python
    environment: dict = field(default_factory=dict)
    preload: bool = False


PEERS = [
    Peer("tidepool ondemand", "driver.py", preload=True, environment={"TIDEPOOL_MODE": "ondemand"}),
    Peer("tidepool prealloc", "driver.py", preload=True, environment={"TIDEPOOL_MODE": "prealloc"}),
    Peer("PyTorch native", "pytorch.py", "torch"),
    Peer("PyTorch expandable", "pytorch.py", "torch",
         {"PYTORCH_ALLOC_CONF": "expandable_segments:True"}),
    Peer("JAX growing", "jax_bfc.py", "jax", {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}),
    Peer("JAX preallocated", "jax_bfc.py", "jax"),
]

# What was done, for the reader of the table.
HOW = """\
tidepool: the whole shim; cuMemAllocAsync and cuMemFreeAsync on one stream. PyTorch: caching_allocator_alloc
and caching_allocator_delete. JAX: one array of bytes for each block, made by a compiled jax.lax.empty
(XLA's AllocateBuffer, exactly the size) and given back by delete(). Held: what the simulated driver gave.\
"""

# A user's own choices would decide what a peer is.
CHOICES = ("TIDEPOOL_", "XLA_PYTHON_", "PYTORCH_", "TF_", "SIM_", "LD_PRELOAD", "CUDA_VISIBLE_DEVICES")


def without_choices():
    return {name: value for name, value in os.environ.items() if not name.startswith(CHOICES)}


class Failed(Exception):
    """A peer that was there did not play its trace to the end."""


@dataclass
class Places:
    """Where the build has the simulated GPU and the shim, and the source its scripts."""

    simgpu: str
    shim: str
    source: Path


def python_of(client, places):
    """The interpreter of a client and None, or None and why there is none."""
    if not client:
        return "/usr/bin/python3", None
    asked = subprocess.run([places.source / "scripts" / "client-python", client], capture_output=True, text=True)
    return (asked.stdout.strip(), None) if asked.returncode == 0 else (None, asked.stderr.strip())


def play(peer, python, trace, places):
    """What the peer holds for `trace`, as its program says, with the peak that the simulator saw."""
    with tempfile.TemporaryDirectory() as folder:
        out, stats = Path(folder, "out.json"), Path(folder, "stats.json")
        environment = without_choices() | {"SIM_MACHINE": f"{folder}/machine", "SIM_STATS": str(stats),
                                           **peer.environment}
        if peer.preload:
            environment["LD_PRELOAD"] = places.shim
        began = time.monotonic()
        ran = subprocess.run([places.simgpu, python, HERE / peer.program, trace, out], env=environment,
                             stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if ran.returncode != 0:
            raise Failed(f"{peer.name} with {trace.name}: exit code {ran.returncode}\n{ran.stderr[-2000:]}")
        played = json.loads(out.read_text())
        device = json.loads(stats.read_text())["devices"][0]
        return {"peer": peer.name, "trace": trace.stem, "held_peak": device["peak_bytes"],
                "seconds": round(time.monotonic() - began, 1), **played}
