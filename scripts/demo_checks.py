#!/usr/bin/env python3
"""The end of scripts/demo: shows the two reports side by side and checks what they promise.

Usage: demo_checks.py FOLDER TIDEPOOL     FOLDER as scripts/demo fills it; exit code 1 if a check fails
"""

import json
import subprocess
import sys
from pathlib import Path

GIB = 1 << 30
PREALLOCATED = 39 / 80  # of the device: half of it was asked for, less what the context takes
ON_DEMAND = 1.5  # times what the program asked for at once


def gib(size):
    return f"{size / GIB:.2f} GiB"


def report(folder, name):
    """The report of the process that used a device: a path and its content."""
    for path in sorted(folder.glob(f"{name}-*.json")):
        content = json.loads(path.read_text())
        if content.get("devices"):
            return path, content
    sys.exit(f"demo: no report of a device in {folder}/{name}-*.json; see {folder}/{name}.err")


def plain_run(folder):
    """What the run without the shim held, as far as somebody saw it."""
    if (used := folder / "plain.used").is_file():  # from nvidia-smi, in MiB, once a second
        return f"{gib(max(map(int, used.read_text().split())) << 20)} (device memory in use, all processes)"
    if (stats := folder / "plain.sim.json").is_file():
        devices = json.loads(stats.read_text())["devices"]
        return gib(max(device["peak_bytes"] for device in devices))
    return "not measured here"


def main(folder, tidepool):
    pre_path, pre = report(folder, "prealloc")
    on_path, on = report(folder, "ondemand")
    subprocess.run([tidepool, "report", pre_path, on_path], check=True)

    pre, on = pre["devices"][0], on["devices"][0]
    wanted = int(pre["total_bytes"] * PREALLOCATED)
    ratio = on["reserved_peak_bytes"] / max(on["requested_peak_bytes"], 1)
    checks = [
        (pre["reserved_peak_bytes"] >= wanted,
         f"prealloc held {gib(pre['reserved_peak_bytes'])}; at least {gib(wanted)} were expected"),
        (on["requested_peak_bytes"] > 0 and ratio <= ON_DEMAND,
         f"ondemand held {gib(on['reserved_peak_bytes'])}, {ratio:.2f} times the "
         f"{gib(on['requested_peak_bytes'])} asked for; at most {ON_DEMAND} times were expected"),
    ]
    print(f"\nplain run held {plain_run(folder)}")
    for good, line in checks:
        print(f"{line}: {'yes' if good else 'NO'}")
    return 0 if all(good for good, _ in checks) else 1


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2]))
