#!/usr/bin/env python3
"""How much faster the shim's pair and mix are than PyTorch's own allocator, on the same simulated GPU.

PyTorch is asked by the C interface of its library, from C++, so that no Python is in the figures; the
client environment `torch` must be there (scripts/setup torch).
"""
import pathlib
import subprocess
import sys

import runs
import table
from runs import BARE, SERVED


def torch_libraries(chosen):
    """LD_LIBRARY_PATH with PyTorch and all that it links: its own folder, and what the launcher completes."""
    found = subprocess.run([chosen.client_python, 'torch'], capture_output=True, text=True, check=False)
    if found.returncode != 0:
        print('skipped:', found.stderr.strip())
        sys.exit(table.SKIPPED)
    python = pathlib.Path(found.stdout.strip())
    ask = ('import importlib.util, os; print(importlib.util.find_spec("torch").submodule_search_locations[0]);'
           'print(os.environ["LD_LIBRARY_PATH"])')
    torch, libraries = subprocess.run([chosen.simgpu, python, '-c', ask], capture_output=True, text=True,
                                      check=True).stdout.split()
    return f'{torch}/lib:{libraries}'


def main():
    parser = runs.parser(__doc__)
    parser.add_argument('--client-python', required=True, help='scripts/client-python')
    parser.add_argument('--simgpu', required=True, help='the launcher of the simulated GPU')
    chosen = parser.parse_args()
    of_torch = {'LD_LIBRARY_PATH': torch_libraries(chosen)}
    rows = []
    for what, ours, theirs in (('pair', 'stream-pair', 'torch-pair'), ('random mix', 'random-mix', 'torch-mix')):
        plays = {mode: lambda mode=mode, ours=ours: runs.play(chosen, ours, mode)['ns'] for mode in SERVED}
        plays['torch'] = lambda theirs=theirs: runs.play(chosen, theirs, BARE, of_torch)['ns']
        results = runs.interleaved(plays, chosen.pairs)
        rows.append(table.Row(f'{what}, PyTorch', results['torch']))
        for mode in SERVED:
            rows.append(table.Row(f'{what}, {mode}', results[mode]))
            rows.append(table.Row(f'{what}, PyTorch to {mode}', runs.ratios(results['torch'], results[mode]), unit='x',
                                  at_least=5))
    return table.finish('pytorch', "Beside PyTorch's raw_alloc and raw_delete", rows, chosen.out,
                        [f'{chosen.pairs} runs of each kind, in turns; of each run its best round'])


if __name__ == '__main__':
    sys.exit(main())
