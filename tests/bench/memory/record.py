"""Records what the client programs of tests/clients ask of the driver, as traces of the usual form.

They run without the shim on the simulated GPU, told by their own documented variables to let the driver be
their pool, so that each buffer is a call; the simulator's log has them all.
"""

import csv
import json
import subprocess
import tempfile
from pathlib import Path

import peers

# name of the trace, environment, program, and what tells it
CLIENTS = [
    ("client_jax_gpt", "jax", "jax_gpt.py", {"XLA_PYTHON_CLIENT_ALLOCATOR": "cuda_async"}),
    ("client_torch_transformer", "torch", "torch_transformer.py", {"PYTORCH_ALLOC_CONF": "backend:cudaMallocAsync"}),
    ("client_tensorflow_classifier", "tensorflow", "tensorflow_classifier.py",
     {"TF_GPU_ALLOCATOR": "cuda_malloc_async"}),
]

ALLOCATIONS = {"cuMemAllocAsync", "cuMemAllocFromPoolAsync"}
# JAX asks for its whole share once and gives it back, to make the driver's pool take it: no buffer.
LARGEST = 32 << 30


def events_of(log):
    """(op, id, size, stream) of each call that gave or took a block; the i-th block and stream are i."""
    live, streams, blocks = {}, {}, 0
    for line in log:
        call = json.loads(line)
        arguments = call.get("args", {})
        if call.get("result") != 0 or "hStream" not in arguments:
            continue
        if call["entry"] in ALLOCATIONS and arguments["bytesize"] <= LARGEST:
            blocks += 1
            live[arguments["dptr"]] = (blocks, arguments["bytesize"])
            yield "a", *live[arguments["dptr"]], streams.setdefault(arguments["hStream"], len(streams))
        elif call["entry"] == "cuMemFreeAsync" and arguments["dptr"] in live:
            yield "f", *live.pop(arguments["dptr"]), streams.setdefault(arguments["hStream"], len(streams))


def record(name, python, program, told, places, folder):
    """Writes the trace `name` into `folder` and gives its path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.csv"
    with tempfile.TemporaryDirectory() as scratch:
        log = Path(scratch, "log")
        ran = subprocess.run([places.simgpu, python, places.source / "tests" / "clients" / "programs" / program],
                             env=peers.without_choices() | told | {"SIM_LOG": str(log)},
                             stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if ran.returncode != 0:
            raise peers.Failed(f"{program}: exit code {ran.returncode}\n{ran.stderr[-2000:]}")
        with open(log) as lines, open(path, "w", newline="") as file:
            rows = csv.writer(file, lineterminator="\n")
            rows.writerow(("t", "op", "id", "size", "stream"))
            rows.writerows((at, *event) for at, event in enumerate(events_of(lines)))
    return path
