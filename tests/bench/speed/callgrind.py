"""Reads what callgrind wrote: instructions by source line, and by function with what it calls.

callgrind_annotate prints the same for people; here the difference of two runs is wanted.
"""
import collections
import re

NAME = re.compile(r'\((\d+)\)(?: (.*))?')


class Profile:
    """Costs are counts of instructions; `by_function` includes callees, `by_line` does not. `calls` is how
    often each function was called."""

    def __init__(self, path):
        self.total = 0
        self.by_line = collections.Counter()
        self.by_function = collections.Counter()
        self.calls = collections.Counter()
        self._names = collections.defaultdict(dict)
        with open(path, encoding='utf-8') as file:
            self._read(file)

    def __sub__(self, other):
        self.total -= other.total
        self.by_line.subtract(other.by_line)
        self.by_function.subtract(other.by_function)
        self.calls.subtract(other.calls)
        return self

    def _name(self, kind, text):
        """Names are written once, and later by their number."""
        number, name = NAME.match(text).groups()
        if name is not None:
            self._names[kind][number] = name
        return self._names[kind][number]

    def _read(self, lines):
        file = function = ''
        line_number = 0
        of_callee = False
        for line in lines:
            key, _, value = line.rstrip('\n').partition('=')
            if key in ('fl', 'fi', 'fe'):
                file = self._name('file', value)
            elif key == 'fn':
                function = self._name('function', value)
            elif key in ('cfi', 'cfl'):
                self._name('file', value)
            elif key == 'cfn':
                callee = self._name('function', value)
            elif key == 'calls':
                of_callee = True
                self.calls[callee] += int(value.split()[0])
            elif line[:1].isdigit() or line[:1] in '+-*':
                position, _, cost = line.partition(' ')
                line_number = (line_number if position == '*' else
                               line_number + int(position) if position[0] in '+-' else int(position))
                self._count(file, function, line_number, int(cost), callee if of_callee else None)
                of_callee = False

    def _count(self, file, function, line, cost, callee):
        if callee is None:
            self.total += cost
            self.by_line[f'{file}:{line}'] += cost
        if callee != function:  # or recursion would count twice
            self.by_function[function] += cost
