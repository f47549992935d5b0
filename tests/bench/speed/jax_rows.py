#!/usr/bin/env python3
"""What a jitted JAX step costs the host, and the driver, under the shim and under JAX's own allocators.

Processes of all allocators are started together and take their steps in turns, round by round, so that a busy
machine strikes all alike; then anew, since each start has a luck of its own. Calls are counted in runs of their own, by the simulated driver, as the
difference of a long run and a short one. Kernels take no time here: the host is what is measured.
"""
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

import runs
import table
from runs import BARE, ONDEMAND, PREALLOC, SERVED

BFC, CUDA_ASYNC = "JAX's own pool", 'plain cuda_async'
KINDS = (ONDEMAND, PREALLOC, BFC, CUDA_ASYNC)
COMMAND_BUFFERS = '--xla_gpu_enable_command_buffer=FUSION,CUBLAS,CUBLASLT,CUSTOM_CALL,CUDNN,DYNAMIC_SLICE_FUSION'
WARM_UP = 50
ROUND = 200
ROUNDS = 5  # of which the best counts
SHORT, LONG = 200, 1200  # steps of the runs that are counted
BETWEEN_RUNS = 0.02  # calls a step by which two runs' warm-ups may differ: one in fifty steps is none a step
EVENTS = ('cuEventRecord', 'cuEventRecordWithFlags', 'cuCtxRecordEvent', 'cuEventQuery', 'cuEventSynchronize')


class Loop:
    """A way of stepping: what of it is donated and whether XLA makes graphs of it."""

    def __init__(self, chosen, python, donated):
        self._chosen = chosen
        self._command = [chosen.simgpu, python, pathlib.Path(__file__).parent / 'program' / 'jax_step.py']
        self._more = {'SIM_KERNEL_NS': '1', 'JAX_COMPILATION_CACHE_DIR': f'{chosen.out}/compiled',
                      'JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS': '0',
                      'JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES': '-1'}
        if donated:
            self._command.append('--donate')
            self._more['XLA_FLAGS'] = COMMAND_BUFFERS

    def start(self, kind, more=()):
        mode = kind if kind in SERVED else BARE
        variables = {**self._more, **dict(more)}
        if kind == CUDA_ASYNC:
            variables['XLA_PYTHON_CLIENT_ALLOCATOR'] = 'cuda_async'
        return Stepper(self._command, runs.environment_of(self._chosen, mode, variables))

    def counted(self, kind, steps):
        """The driver's own record of a run of so many steps."""
        with tempfile.TemporaryDirectory() as folder:
            stats = pathlib.Path(folder) / 'stats'
            with self.start(kind, {'SIM_STATS': str(stats), 'SIM_COST': 'h200'}) as stepper:
                stepper.take(steps)
            return json.loads(stats.read_text(encoding='utf-8'))


class Stepper:
    """A process that takes steps when it is told to."""

    def __init__(self, command, environment):
        # Variables of JAX that a user has set would choose another allocator.
        environment = {name: value for name, value in environment.items()
                       if not name.startswith(('XLA_PYTHON_', 'XLA_CLIENT_')) or value == 'cuda_async'}
        self._errors = tempfile.TemporaryFile(mode='w+')
        self._process = subprocess.Popen(command, env=environment, text=True, stdin=subprocess.PIPE,
                                         stdout=subprocess.PIPE, stderr=self._errors)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.stdin.close()
        self._process.wait(timeout=60)
        self._errors.close()

    def turn(self):
        return self.take(ROUND)

    def take(self, steps):
        """(clock, cores) in microseconds a step."""
        self._process.stdin.write(f'{steps}\n')
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            self._errors.seek(0)
            raise SystemExit(f'JAX ended before its answer: {self._errors.read()[-2000:]}')
        return tuple(map(float, answer.split()))


def best_of_a_start(loop):
    """kind -> (clock, cores), the best round of each kind's process; all are started anew."""
    steppers = {kind: loop.start(kind) for kind in KINDS}
    for stepper in steppers.values():
        stepper.take(WARM_UP)
    rounds = runs.interleaved({kind: steppers[kind].turn for kind in KINDS}, ROUNDS)
    for stepper in steppers.values():
        stepper.__exit__()
    return {kind: tuple(map(min, zip(*rounds[kind]))) for kind in KINDS}


def time_rows(what, starts, at_most, at_least):
    clock = {kind: [start[kind][0] for start in starts] for kind in KINDS}
    cores = {kind: statistics.median(start[kind][1] for start in starts) for kind in KINDS}
    for kind in KINDS:
        yield table.Row(f'{what}, {kind}: a step', clock[kind], unit='us',
                        beside=f'of the cores {table.number(cores[kind])}')
    for mode in SERVED:
        yield table.Row(f'{what}, {mode} to {BFC}', runs.ratios(clock[mode], clock[BFC]), unit='x', at_most=at_most)
        if at_least:
            yield table.Row(f'{what}, {CUDA_ASYNC} to {mode}', runs.ratios(clock[CUDA_ASYNC], clock[mode]),
                            unit='x', at_least=at_least)


def memory_call(name):
    return name.startswith('cuMem') and not name.startswith(('cuMemcpy', 'cuMemset'))


def node_update(name):
    return name.startswith('cuGraphExecKernelNodeSetParams')


def a_step(short, long, wanted):
    """Calls of the wanted entries in each step after the warm-up."""
    counts = [sum(count for name, count in record['calls'].items() if wanted(name)) for record in (short, long)]
    return (counts[1] - counts[0]) / (LONG - SHORT)


def call_rows(what, loop, node_updates):
    records = {kind: (loop.counted(kind, SHORT), loop.counted(kind, LONG)) for kind in KINDS}

    def of(kind, wanted):
        return a_step(*records[kind], wanted)

    def listed(wanted):
        return ', '.join(f'{kind} {of(kind, wanted):.1f}' for kind in (BFC, CUDA_ASYNC))

    for mode in SERVED:
        yield table.Row(f'{what}, memory calls of the driver a step, {mode}', [of(mode, memory_call)], unit='',
                        at_most=BETWEEN_RUNS, beside=listed(memory_call))
        yield table.Row(f'{what}, event records and queries that the shim adds, {mode}',
                        [of(mode, EVENTS.__contains__) - of(BFC, EVENTS.__contains__)], unit='', at_most=2,
                        beside=listed(EVENTS.__contains__))
        yield table.Row(f'{what}, all calls of the driver a step, {mode}', [of(mode, lambda _: True)], unit='',
                        beside=listed(lambda _: True))
        modelled = [records[kind][0]['modelled']['total_ns'] / 1e6 for kind in (mode, BFC)]
        yield table.Row(f"{what}, modelled driver time of {SHORT} steps, {mode} to {BFC}", [modelled[0] / modelled[1]],
                        unit='x', at_most=1.02 if mode == ONDEMAND else None,
                        beside=f'{modelled[0]:.2f} to {modelled[1]:.2f} ms')
        if node_updates:
            yield table.Row(f'{what}, updates of kernel nodes a step, {mode}', [of(mode, node_update)], unit='',
                            at_most=node_updates, beside=listed(node_update))


def main():
    parser = runs.parser(__doc__)
    parser.add_argument('--client-python', required=True, help='scripts/client-python')
    parser.add_argument('--simgpu', required=True, help='the launcher of the simulated GPU')
    chosen = parser.parse_args()
    found = subprocess.run([chosen.client_python, 'jax'], capture_output=True, text=True, check=False)
    if found.returncode != 0:
        print('skipped:', found.stderr.strip())
        return table.SKIPPED
    rows = []
    for what, donated, at_most, at_least, updates in (('kept', False, 1.02, 1.3, None),
                                                      ('donated, graphs', True, 0.90, None, 12)):
        loop = Loop(chosen, found.stdout.strip(), donated)
        calls = [*call_rows(what, loop, updates)]  # first: these runs compile for all
        starts = [best_of_a_start(loop) for _ in range(chosen.pairs)]
        rows += [*time_rows(what, starts, at_most, at_least), *calls]
    launch = min(runs.play(chosen, 'launch', BARE, {'SIM_KERNEL_NS': '1'})['ns'] for _ in range(chosen.pairs))
    return table.finish('jax', 'A jitted JAX step of a small GPT', rows, chosen.out,
                        [f'{chosen.pairs} starts of each kind, in turns; of each the best of {ROUNDS} rounds of {ROUND} steps',
                         f'calls: between step {SHORT} and step {LONG}',
                         f'the simulated driver needs {launch:.0f} ns for a launch; other calls are in names.txt'])


if __name__ == '__main__':
    sys.exit(main())
