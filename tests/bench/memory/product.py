"""Rows of the whole shim that no trace shows: its own host memory, and what it keeps of a quiet program."""

import statistics
import subprocess
import tempfile

import peers

KIB, MIB = 1 << 10, 1 << 20
PAIRS = 5


def measured(situation, mode, places):
    """The number of peers/host.py; a mode of None is a program without the shim."""
    with tempfile.TemporaryDirectory() as folder:
        environment = peers.without_choices() | {"SIM_MACHINE": f"{folder}/machine"}
        if mode:
            environment |= {"TIDEPOOL_MODE": mode, "LD_PRELOAD": places.shim}
        ran = subprocess.run([places.simgpu, "/usr/bin/python3", peers.HERE / "host.py", situation],
                             env=environment, capture_output=True, text=True)
    if ran.returncode != 0:
        raise peers.Failed(f"{situation}, {mode}: exit code {ran.returncode}\n{ran.stderr[-2000:]}")
    return float(ran.stdout)


def idle(places):
    """What a program has more with the shim. What the simulated driver keeps differs a little too."""
    return statistics.median(measured("idle", "ondemand", places) - measured("idle", None, places)
                             for _ in range(PAIRS))


def rows(places):
    """Each with its figure, the most it may be, and whether it is."""
    table = [
        ("host memory a live block, bytes", 1, 100, lambda: measured("blocks", "ondemand", places)),
        ("host memory when idle, KiB", KIB, 2 * KIB, lambda: idle(places)),
        # Pages that threads touch for the first time; a leak of a byte a call would be far more.
        ("host memory that 32 threads add in 14 s, KiB", KIB, 256, lambda: measured("soak", "ondemand", places)),
        ("held 30 s after everything is freed, MiB", MIB, 64, lambda: measured("quiet", "ondemand", places)),
    ]
    for what, unit, limit, figure in table:
        try:
            value = figure() / unit
        except peers.Failed as error:
            yield {"what": f"{what}: {error}", "value": None, "limit": limit, "ok": False}
            continue
        yield {"what": what, "value": value, "limit": limit, "ok": value <= limit}


def text(row):
    verdict = "ok" if row["ok"] else "FAILS"
    value = "-" if row["value"] is None else f"{row['value']:.1f}"
    return f"{row['what']:46} {value:>10} {row['limit']:10}  {verdict}"
