"""Draws memory.json: memory over time for one trace under each policy and peer, and the cost curve.

Usage: plot.py FOLDER [TRACE]     reads FOLDER/memory.json, writes FOLDER/*.png and names them
"""

import json
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot  # noqa: E402  the backend must be chosen first

TRACE = "torch_transformer_async"
GIB = 1 << 30


def over_time(figures, trace, out):
    """What is asked, and what everybody holds for it; who holds far more gets the upper of two axes."""
    curves = [(f"engine {row['policy']}", row["samples"]) for row in figures["replays"] if row["trace"] == trace]
    if not curves:
        return f"{out.name}: left out, there are no figures of {trace}"
    asked = curves[0][1]
    curves += [(row["peer"], row["samples"]) for row in figures.get("peers", []) if row["trace"] == trace]
    near = 4 * max(live for _, live, _ in asked)
    canvas, (far_axis, axis) = pyplot.subplots(2, 1, sharex=True, figsize=(11, 7), height_ratios=[1, 3],
                                               layout="constrained")
    axis.fill_between([at for at, _, _ in asked], [live / GIB for _, live, _ in asked], color="0.85", label="asked")
    for name, samples in curves:
        target = far_axis if max(held for *_, held in samples) > near else axis
        # Lines that lie on each other: the product does what its engine does.
        style = {"linestyle": ":", "linewidth": 2.5} if name.startswith("engine") else {"linewidth": 1.3}
        target.plot([at for at, _, _ in samples], [held / GIB for *_, held in samples], label=name, **style)
    for target in (far_axis, axis):
        target.set_ylim(bottom=0)
        target.set_ylabel("GiB")
        if target.get_legend_handles_labels()[0]:
            target.legend(loc="lower right", fontsize="small", ncols=2)
    axis.set_xlabel("event of the trace")
    far_axis.set_title(f"{trace}: memory held for what is asked")
    canvas.savefig(out, dpi=110)
    return str(out)


def cost_curve(figures, out):
    if "cost_curves" not in figures:
        return f"{out.name}: left out, the cost curve was not measured"
    canvas, (time, memory) = pyplot.subplots(1, 2, figsize=(11, 4.5), layout="constrained")
    for row in figures["cost_curves"]:
        live = [point["live"] for point in row["points"]]
        time.plot(live, [point["nanoseconds"] for point in row["points"]], "o-", label=row["policy"])
        memory.plot(live, [point["host_resident_bytes"] for point in row["points"]], "o-", label=row["policy"])
    first = min(row["points"][0]["nanoseconds"] for row in figures["cost_curves"])
    time.axhline(3 * first, color="0.6", linestyle="--", label="three times the smallest")
    memory.axhline(100, color="0.6", linestyle="--", label="100 bytes")
    for axis, title in ((time, "ns an operation"), (memory, "host bytes a live block")):
        axis.set(xscale="log", yscale="log", xlabel="live blocks", title=title)
        axis.legend()
    canvas.savefig(out, dpi=110)
    return str(out)


def main():
    folder = Path(sys.argv[1])
    figures = json.loads((folder / "memory.json").read_text())
    print(over_time(figures, sys.argv[2] if len(sys.argv) > 2 else TRACE, folder / "memory-over-time.png"))
    print(cost_curve(figures, folder / "memory-cost-curve.png"))


if __name__ == "__main__":
    main()
