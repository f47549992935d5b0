"""Runs the speed program's scenes side by side: without the shim and in its modes, in turns."""
import argparse
import json
import os
import subprocess

import table

BARE, ONDEMAND, PREALLOC = 'bare', 'ondemand', 'prealloc'
SERVED = (ONDEMAND, PREALLOC)


def parser(description):
    result = argparse.ArgumentParser(description=description.splitlines()[0])
    result.add_argument('--program', required=True, help='speed_program')
    result.add_argument('--shim', required=True, help='libtidepool.so')
    result.add_argument('--libraries', required=True, help="folder of the simulated GPU's libraries")
    result.add_argument('--out', required=True, help='folder for the tables')
    result.add_argument('--pairs', type=int, default=table.FEWEST_PAIRS + 1, help='runs of each kind')
    return result


def environment_of(chosen, mode, more=()):
    environment = {name: value for name, value in os.environ.items()
                   if not name.startswith(('SIM_', 'TIDEPOOL_', 'LD_'))}
    environment['LD_LIBRARY_PATH'] = chosen.libraries
    if mode != BARE:
        environment.update(LD_PRELOAD=chosen.shim, TIDEPOOL_MODE=mode)
    environment.update(more)
    return environment


def play(chosen, scene, mode, more=()):
    """One scene in a process of its own; its figures."""
    done = subprocess.run([chosen.program, scene], env=environment_of(chosen, mode, more),
                          capture_output=True, text=True, check=False, timeout=300)
    if done.returncode != 0:
        raise SystemExit(f'{scene} in {mode} ended with {done.returncode}: {done.stderr}')
    return json.loads(done.stdout)


def interleaved(plays, pairs):
    """plays: name -> function; every other time in the reverse order. name -> list of what they gave."""
    results = {name: [] for name in plays}
    names = list(plays)
    for number in range(pairs):
        for name in names if number % 2 == 0 else reversed(names):
            results[name].append(plays[name]())
    return results


def ratios(above, below):
    return [first / second for first, second in zip(above, below)]
