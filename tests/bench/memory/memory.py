"""Measures tidepool's memory and that of its peers, and writes memory.txt and memory.json.

Runs the replay program (the engine alone, with its limits), the whole shim in a few situations (product.py),
then each peer with each trace on the simulated GPU. The exit code is 1 when a row with a limit is not as it
should be or a peer fails.

Usage: memory.py --replay PROGRAM --simgpu PROGRAM --shim LIBRARY --out FOLDER [--only TEXT] [--no-curve] [--no-peers]
"""

import argparse
import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import peers
import product
import record

SOURCE = Path(__file__).resolve().parents[3]
TRACES = SOURCE / "tests" / "property" / "traces"
# They are timed by nobody, and wait most of the time.
AT_ONCE = 2

MIB = 1 << 20


def progress(text):
    print(text, file=sys.stderr, flush=True)


def recorded(options):
    """Traces of the client programs that are here, why others are not, and what failed."""
    traces, skipped, failed = [], [], []
    places = places_of(options)
    for name, client, program, told in record.CLIENTS:
        python, why = peers.python_of(client, places)
        if why:
            skipped.append({"peer": name, "why": why})
            progress(f"skipped: {name}: {why}")
            continue
        try:
            traces.append(record.record(name, python, program, told, places, options.out / "traces"))
            progress(f"recorded: {name}")
        except peers.Failed as error:
            failed.append(str(error))
            progress(f"FAILS: {error}")
    return traces, skipped, failed


def replay(options, traces):
    """The replay program's text, its figures, and whether all rows are good."""
    figures = options.out / "memory.replay.json"
    command = [options.replay, "--json", figures, *traces, *(["--only", options.only] if options.only else []),
               *(["--no-curve"] if options.no_curve else [])]
    ran = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if ran.returncode not in (0, 1):
        sys.exit(f"memory.py: the replay program ended with {ran.returncode}")
    result = json.loads(figures.read_text())
    figures.unlink()
    return ran.stdout, result, ran.returncode == 0


def places_of(options):
    return peers.Places(options.simgpu, options.shim, SOURCE)


def whole_shim(options):
    """Rows of what no trace shows, and their text."""
    rows, lines = [], ["The whole shim, on demand", "", f"{'what':46} {'value':>10} {'limit':>10}  verdict"]
    for row in product.rows(places_of(options)):
        rows.append(row)
        lines.append(product.text(row))
        progress(lines[-1])
    return rows, "\n".join(lines) + "\n"


def play_all(options, traces):
    """Rows of all peers that are here, why others are not, and what failed."""
    places = places_of(options)
    rows, skipped, failed, jobs = [], [], [], []
    for peer in peers.PEERS:
        python, why = peers.python_of(peer.client, places)
        if why:
            skipped.append({"peer": peer.name, "why": why})
            progress(f"skipped: {peer.name}: {why}")
        else:
            jobs += [(peer, python, trace) for trace in traces]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        running = [(peer, trace, pool.submit(peers.play, peer, python, trace, places))
                   for peer, python, trace in jobs]
        for done, (peer, trace, result) in enumerate(running, 1):
            try:
                rows.append(result.result())
                progress(f"[{done}/{len(jobs)}] {peer.name}, {trace.stem}: {rows[-1]['seconds']} s")
            except peers.Failed as error:
                failed.append(str(error))
                progress(f"[{done}/{len(jobs)}] FAILS: {error}")
    return rows, skipped, failed


def comparison(rows, skipped, asked):
    """One line for each trace: what each peer holds at its peak, over what was asked at the peak."""
    names = [peer.name for peer in peers.PEERS if any(row["peer"] == peer.name for row in rows)]
    held = {(row["trace"], row["peer"]): row["held_peak"] for row in rows}
    lines = ["Whole programs on the simulated GPU: held at the peak / asked at the peak", peers.HOW, "",
             f"{'trace':28} {'asked MiB':>9}" + "".join(f" {name:>18}" for name in names)]
    for trace, peak in asked.items():
        ratios = [held.get((trace, name)) for name in names]
        cells = "".join(f" {ratio / peak:18.3f}" if ratio else f" {'-':>18}" for ratio in ratios)
        lines.append(f"{trace:28} {peak / MIB:9.1f}" + cells)
    lines += [f"skipped: {one['peer']}: {one['why']}" for one in skipped]
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--no-curve", action="store_true", help="leave the cost curve out")
    for name in ("--replay", "--simgpu", "--shim"):
        parser.add_argument(name, required=True)
    parser.add_argument("--out", required=True, type=Path)
    parser.add_argument("--only", default="", help="only traces whose name has this in it")
    parser.add_argument("--no-peers", action="store_true")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)

    traces, skipped, failed = [], [], []
    if not options.no_peers:
        progress("recording client programs")
        traces, skipped, failed = recorded(options)
    progress("replaying traces, and measuring the cost curve")
    text, result, good = replay(options, traces)
    progress("measuring the whole shim")
    result["product"], lines = whole_shim(options)
    text += "\n" + lines
    good = good and all(row["ok"] for row in result["product"])
    asked = {row["trace"]: row["asked_peak"] for row in result["replays"]}
    if not options.no_peers:
        paths = [path for path in [*sorted(TRACES.glob("*.csv")), *traces] if path.stem in asked]
        rows, missing, broken = play_all(options, paths)
        skipped += missing
        failed += broken
        result |= {"peers": rows, "skipped": skipped, "failed": failed}
        text += "\n" + comparison(rows, skipped, asked) + "".join(f"FAILS: {one}\n" for one in failed)
        good = good and not failed
    (options.out / "memory.txt").write_text(text)
    (options.out / "memory.json").write_text(json.dumps(result) + "\n")
    print(text, end="")
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
