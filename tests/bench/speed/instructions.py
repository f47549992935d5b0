#!/usr/bin/env python3
"""How many instructions a warm stream-ordered pair takes, against a figure that is kept (instructions.json);
and how many locks a question about a host pointer takes: the shim may add none.

A count does not depend on how busy the machine is, so it may differ by 5 % only, up or down: who makes a
pair cheaper keeps the new figure with --keep. What the driver does for the shim is part of it, and listed
beside it. The figure is for the compiler and the kind of build that are kept with it.
"""
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import callgrind
import runs
import table
from runs import BARE, SERVED

KEPT = pathlib.Path(__file__).with_name('instructions.json')
SLACK = 0.05
COUNT = 10000  # by which two scenes of a kind differ
LISTED = 25


def profile(chosen, scene, mode):
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / 'profile'
        # valgrind has room for a small device's addresses only.
        environment = runs.environment_of(chosen, mode, {'SIM_MEMORY': '1GiB'})
        done = subprocess.run(['valgrind', '--tool=callgrind', f'--callgrind-out-file={out}', chosen.program, scene],
                              env=environment, capture_output=True, text=True, check=False)
        if done.returncode != 0 or not json.loads(done.stdout)['counted']:
            raise SystemExit(f'{scene} in {mode} under valgrind ended with {done.returncode}: {done.stderr}')
        return callgrind.Profile(out)


def a_kind(chosen, what, mode):
    return profile(chosen, f'many-{what}', mode) - profile(chosen, f'few-{what}', mode)


def lock_rows(chosen):
    """Of a mutex or a shared one, by whichever of their functions."""
    locks = {mode: sum(count for name, count in a_kind(chosen, 'questions', mode).calls.items()
                       if re.match(r'(__)?pthread_(mutex|rwlock)_\w*lock', name)
                       and 'unlock' not in name) / COUNT
             for mode in (BARE, *SERVED)}
    for mode in SERVED:
        yield table.Row(f'locks that are added to a question about a host pointer, {mode}',
                        [locks[mode] - locks[BARE]], unit='', at_most=0, beside=f'bare simulator {locks[BARE]:.2f}')


def short(name):
    """Without what a template was made of, and what kind of libc this is."""
    name = re.sub(r'\(anonymous namespace\)::|@@.*', '', name)
    while (plain := re.sub(r'<[^<>]*>|\([^()]*\)', '', name)) != name:
        name = plain
    return name


def where(difference):
    lines = ['', 'Where the instructions of a pair are, with what each function calls:']
    for function, count in difference.by_function.most_common():
        if len(lines) < LISTED and COUNT <= count < difference.total * 0.95:
            lines.append(f'{count / COUNT:8.0f}  {short(function)}')
    lines += ['', 'By line:']
    for line, count in difference.by_line.most_common(LISTED):
        lines.append(f'{count / COUNT:8.0f}  {re.sub(r"^.*/[.][.]/", "", line)}')
    return lines


def main():
    parser = runs.parser(__doc__)
    parser.add_argument('--build', required=True, help='compiler and kind of build')
    parser.add_argument('--keep', action='store_true', help='keep what is measured as the figures to hold')
    chosen = parser.parse_args()
    kept = json.loads(KEPT.read_text(encoding='utf-8'))
    if shutil.which('valgrind') is None:
        print('skipped: valgrind is not installed (Debian package valgrind)')
        return table.SKIPPED
    if chosen.build != kept['build'] and not chosen.keep:
        print(f'skipped: the figures are kept for {kept["build"]}, this build is {chosen.build}')
        return table.SKIPPED
    rows, notes = [], []
    for mode in SERVED:
        difference = a_kind(chosen, 'pairs', mode)
        count = difference.total / COUNT
        if chosen.keep:
            kept['pair'][mode] = round(count)
        figure = kept['pair'][mode]
        off = abs(count / figure - 1) * 100
        rows.append(table.Row(f'instructions of a pair, {mode}', [count], unit=''))
        rows.append(table.Row(f'the same: away from the figure that is kept, {mode}', [off], unit='%',
                              at_most=SLACK * 100, beside=f'kept: {figure}'))
        notes = notes or where(difference)
    rows += lock_rows(chosen)
    if chosen.keep:
        kept['build'] = chosen.build
        KEPT.write_text(json.dumps(kept, indent=1) + '\n', encoding='utf-8')
    return table.finish('instructions', 'Instructions of a warm stream-ordered pair', rows, chosen.out, notes)


if __name__ == '__main__':
    sys.exit(main())
