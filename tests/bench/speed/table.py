"""Rows of figures with their limits, as text and JSON. How much of a median is chance is said beside it.

A row is ok when the whole confidence interval keeps to the limit, so that luck makes no row ok.
"""
import dataclasses
import json
import math
import os
import pathlib
import statistics

FEWEST_PAIRS = 20
SKIPPED = 77  # of meson


def median_interval(values):
    """The order statistics between which the true median lies with 95 % confidence or more."""
    ordered = sorted(values)
    count = len(ordered)
    below = 0.0
    rank = 0  # how many of each end can be left out
    while rank < count // 2:
        below += math.comb(count, rank) / 2**count
        if 2 * below > 0.05:
            break
        rank += 1
    if rank == 0:  # too few values for any confidence
        return ordered[0], ordered[-1]
    return ordered[rank - 1], ordered[-rank]


@dataclasses.dataclass
class Row:
    """One figure: the values of all runs, and the limit they must keep to, if there is one."""
    what: str
    values: list
    unit: str = 'ns'
    at_most: float = None
    at_least: float = None
    beside: str = ''

    def __post_init__(self):
        self.median = statistics.median(self.values)
        self.low, self.high = median_interval(self.values)

    @property
    def verdict(self):
        if self.at_most is None and self.at_least is None:
            return 'reported'
        good = self.high <= self.at_most if self.at_most is not None else self.low >= self.at_least
        return 'ok' if good else 'FAILS'

    @property
    def limit(self):
        if self.at_most is not None:
            return f'<= {self.at_most:g}'
        return f'>= {self.at_least:g}' if self.at_least is not None else ''


def number(value):
    value = round(value, 2) + 0.0  # no -0.00
    return f'{value:.0f}' if abs(value) >= 100 else f'{value:.1f}' if abs(value) >= 10 else f'{value:.2f}'


def as_text(title, rows, notes):
    cells = [('', 'median', '95 %', '', 'limit', '', 'beside it')]
    for row in rows:
        interval = '' if row.low == row.high else f'{number(row.low)} - {number(row.high)}'
        cells.append((row.what, number(row.median), interval, row.unit, row.limit, row.verdict, row.beside))
    widths = [max(len(line[i]) for line in cells) for i in range(len(cells[0]))]
    lines = [title]
    for line in cells:
        justified = [cell.rjust(width) if i == 1 else cell.ljust(width)
                     for i, (cell, width) in enumerate(zip(line, widths))]
        lines.append('  '.join(justified).rstrip())
    return '\n'.join(lines + notes) + '\n'


def finish(name, title, rows, folder, notes=()):
    """Writes NAME.txt and NAME.json, prints the table, and says by its result how meson's test ends."""
    load = os.getloadavg()[0]
    notes = [*notes, f'{os.cpu_count()} cores, load {load:.1f} at the end']
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    text = as_text(title, rows, notes)
    (folder / f'{name}.txt').write_text(text, encoding='utf-8')
    fields = ('what', 'median', 'low', 'high', 'unit', 'at_most', 'at_least', 'verdict', 'beside', 'values')
    data = {'table': name, 'title': title, 'notes': notes,
            'rows': [{field: getattr(row, field) for field in fields} for row in rows]}
    (folder / f'{name}.json').write_text(json.dumps(data, indent=1) + '\n', encoding='utf-8')
    print(text, end='')
    return 1 if any(row.verdict == 'FAILS' for row in rows) else 0
