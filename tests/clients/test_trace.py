#!/usr/bin/env python3
"""A trace of a real PyTorch program, converted, is read by readers that are not of this project: the snapshot
by the viewer in the torch wheel, the others by Python's json and csv; all must come to the report's figures.

Usage: test_trace.py SHIM TIDEPOOL SIMGPU CLIENT_PYTHON SOURCE_ROOT
"""
import csv
import json
import os
import pathlib
import subprocess
import sys
import tempfile

shim, tidepool, simgpu, client_python, source = sys.argv[1:]
PYTHON = subprocess.run([client_python, 'torch'], check=True, capture_output=True, text=True).stdout.strip()

# Runs in the client's Python: what PyTorch's own code makes of the snapshot.
READER = '''
import json, pickle, sys
from torch.cuda import _memory_viz as viewer
snapshot = pickle.load(open(sys.argv[1], 'rb'))
pages = viewer.segsum(snapshot), viewer.trace(snapshot), viewer.trace_plot(snapshot), viewer.segment_plot(snapshot)
for segment in snapshot['segments']:
    assert sum(block['size'] for block in segment['blocks']) == segment['total_size'], segment
actions = [event['action'] for event in snapshot['device_traces'][0]]
print(json.dumps({'alloc': actions.count('alloc'), 'free': actions.count('free_completed'),
                  'held': sum(segment['total_size'] for segment in snapshot['segments']),
                  'live': sum(segment['allocated_size'] for segment in snapshot['segments']),
                  'pages': [len(page) for page in pages]}))
'''


def run(command, **environment):
    kept = {name: value for name, value in os.environ.items() if not name.startswith(('SIM_', 'TIDEPOOL_'))}
    done = subprocess.run(command, env={**kept, **environment}, capture_output=True, text=True, check=False,
                          timeout=300)
    assert done.returncode == 0, (command, done.returncode, done.stdout, done.stderr)
    return done.stdout


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        trace = folder / 'trace'
        run([simgpu, PYTHON, f'{source}/tests/clients/programs/torch_transformer.py'], LD_PRELOAD=shim,
            TIDEPOOL_TRACE=str(trace), TIDEPOOL_REPORT=str(folder / 'report'),
            PYTORCH_ALLOC_CONF='backend:cudaMallocAsync')
        device = json.loads((folder / 'report').read_text(encoding='utf-8'))['devices'][0]
        assert device['allocations'] > 1000 and device['frees'] > 1000, device
        for form in ('csv', 'perfetto', 'torch-snapshot'):
            run([tidepool, 'trace', str(trace), '--to', form, '-o', str(folder / form)])

        with open(folder / 'csv', newline='', encoding='utf-8') as file:
            rows = list(csv.DictReader(file))
        assert sum(row['event'] == 'allocate' for row in rows) == device['allocations']
        assert sum(row['event'] == 'free' for row in rows) == device['frees']
        assert max(int(row['live_bytes']) for row in rows) == device['requested_peak_bytes']
        assert max(int(row['held_bytes']) for row in rows) == device['reserved_peak_bytes']

        events = json.loads((folder / 'perfetto').read_text(encoding='utf-8'))['traceEvents']
        memory = [event['args'] for event in events if event['name'] == '[memory]']
        assert sum(one['Bytes'] > 0 for one in memory) == device['allocations']
        assert sum(one['Bytes'] for one in memory) == device['live_bytes']
        counters = [event['args'] for event in events if event['ph'] == 'C']
        assert max(one['live'] for one in counters) == device['requested_peak_bytes']
        times = [event['ts'] for event in events if 'ts' in event]
        assert times == sorted(times)

        seen = json.loads(run([simgpu, PYTHON, '-c', READER, str(folder / 'torch-snapshot')]))
        print(seen)
        assert seen['alloc'] == device['allocations'] and seen['free'] == device['frees'], (seen, device)
        assert seen['live'] == device['live_bytes'], (seen, device)
        assert seen['held'] == device['reserved_bytes'], (seen, device)
        assert all(size > 100 for size in seen['pages']), seen
    print('done')


main()
