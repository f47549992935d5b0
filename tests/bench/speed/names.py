#!/usr/bin/env python3
"""What an allocation costs through the driver's exported names, with the shim and without it.

Both are played in turns within one run, each scene by a process of its own (program/). The simulated
driver's own cost stands beside each row: it is the ground, and not part of what is limited.
"""
import json
import pathlib
import statistics
import sys
import tempfile

import runs
import table
from runs import BARE, SERVED


def column(results, key):
    return [result[key] for result in results]


def beside(results, key='ns', word='bare simulator'):
    return f'{word} {table.number(statistics.median(column(results, key)))}'


def side_by_side(chosen, scene, more=(), pairs=None):
    plays = {mode: lambda mode=mode: runs.play(chosen, scene, mode, more) for mode in (BARE, *SERVED)}
    return runs.interleaved(plays, pairs or chosen.pairs)


def pair_rows(chosen):
    asked = [('stream-pair', 'stream-ordered pair, own stream', 60, {}),
             ('null-stream-pair', 'stream-ordered pair, NULL stream', 60, {}),
             ('per-thread-pair', 'stream-ordered pair, per-thread stream', None, {}),
             ('synchronous-pair', 'cuMemAlloc pair, idle device', 300, {}),
             ('synchronous-pair', 'cuMemAlloc pair, FAST_FREE', 80, {'TIDEPOOL_FAST_FREE': '1'}),
             ('busy-pair', 'cuMemAlloc pair, kernel in flight', None, {}),
             ('random-mix', 'random mix, 4,000 live, an operation', 120, {})]
    for scene, what, limit, more in asked:
        results = side_by_side(chosen, scene, more)
        for mode in SERVED:
            yield table.Row(f'{what}, {mode}', column(results[mode], 'ns'), at_most=limit,
                            beside=beside(results[BARE]))


def referee_row(chosen):
    """The scene with the kernel in flight once more, judged; how often it broke a rule."""
    broken = []
    for mode in SERVED:
        with tempfile.TemporaryDirectory() as folder:
            log = pathlib.Path(folder) / 'verdict'
            runs.play(chosen, 'busy-pair', mode, {'LD_PRELOAD': f'{chosen.referee}:{chosen.shim}',
                                                  'REFEREE_LOG': str(log), 'SIM_DETECT': 'all'})
            words = log.read_text(encoding='utf-8').splitlines()[-1].replace(',', '').split()
        checked = int(words[words.index('checked') + 1])
        # Silence must be of one who looked.
        broken.append(int(words[-1]) if checked > 0 else 1)
    return table.Row('the same, rules broken as the referee sees it', broken, unit='', at_most=0)


def thread_rows(chosen):
    for scene, what in (('threads-apart', 'a stream each'), ('threads-together', 'one stream')):
        results = side_by_side(chosen, scene)
        for mode in SERVED:
            yield table.Row(f'2 threads, {what}: gain to bare gain, {mode}', column(results[mode], 'of bare'),
                            unit='x', at_least=0.8, beside=beside(results[BARE], 'of bare'))


def peak_bytes(chosen, scene, mode):
    with tempfile.TemporaryDirectory() as folder:
        stats = pathlib.Path(folder) / 'stats'
        runs.play(chosen, scene, mode, {'SIM_STATS': str(stats)})
        return json.loads(stats.read_text(encoding='utf-8'))['devices'][0]['peak_bytes']


def handover_rows(chosen):
    results = side_by_side(chosen, 'handover')
    for mode in SERVED:
        yield table.Row(f'one allocates, one frees: to the pair, {mode}', column(results[mode], 'of pair'),
                        unit='x', at_most=2, beside=beside(results[BARE], 'ns') + ' ns, here '
                        + beside(results[mode], 'ns', 'a pair') + ' ns')
    for mode in SERVED:
        grown = peak_bytes(chosen, 'handover-long', mode) - peak_bytes(chosen, 'handover', mode)
        yield table.Row(f'one allocates, one frees, 4 times as long: more of the device, {mode}', [grown / 2**20],
                        unit='MiB', at_most=0)
        # 380,000 pairs: less than a byte of each is no growth but the libc's own arenas.
        host = runs.play(chosen, 'handover-long', mode)['host KiB grown']
        yield table.Row(f'the same: host memory in the second half, {mode}', [host], unit='KiB', at_most=256)


def growth_rows(chosen):
    # The bare simulator would take minutes with a million blocks.
    plays = {mode: lambda mode=mode: runs.play(chosen, 'growth', mode) for mode in SERVED}
    results = runs.interleaved(plays, chosen.pairs)
    for mode in SERVED:
        for kind, what in (('mix', 'random blocks replaced'), ('pair', 'pair of one size')):
            ratios = [result[f'{kind} 1000000'] / result[f'{kind} 1000'] for result in results[mode]]
            medians = [table.number(statistics.median(column(results[mode], f'{kind} {live}')))
                       for live in (1000, 10000, 100000, 1000000)]
            yield table.Row(f'1,000 to 1,000,000 live, {what}, {mode}', ratios, unit='x', at_most=3,
                            beside=f'{", ".join(medians)} ns an operation' if kind == 'mix'
                            else f'{", ".join(medians)} ns a pair')


def question_rows(chosen):
    results = side_by_side(chosen, 'pointer-questions')
    for mode in SERVED:
        for key, what in (('one', 'cuPointerGetAttribute'), ('several', 'cuPointerGetAttributes')):
            added = [with_it[key] - without[key] for with_it, without in zip(results[mode], results[BARE])]
            yield table.Row(f'added to {what} of a host pointer, {mode}', added, at_most=20,
                            beside=beside(results[BARE], key))


def main():
    parser = runs.parser(__doc__)
    parser.add_argument('--referee', required=True, help='libreferee.so')
    chosen = parser.parse_args()
    rows = [*pair_rows(chosen), referee_row(chosen), *thread_rows(chosen), *handover_rows(chosen),
            *growth_rows(chosen), *question_rows(chosen)]
    return table.finish('names', "Through the driver's exported names", rows, chosen.out,
                        [f'{chosen.pairs} runs of each kind, in turns; of each run its best round'])


if __name__ == '__main__':
    sys.exit(main())
