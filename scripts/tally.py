#!/usr/bin/env python3
"""Sums meson's test logs into the one line that scripts/test ends with.

Usage: tally.py LOG.json…     as `meson test` writes them

A meson test is one program, and a Catch2 program holds many test cases: where its output ends with
Catch2's own summary, its cases are counted, else the program counts as one. A program that crashed,
hung or failed counts at least one failure, whatever its summary says. A log that is missing counts as
a failure too: nothing ran where something should have.
"""

import json
import re
import sys
from pathlib import Path

# Catch2's two forms: "All tests passed (9 assertions in 4 test cases)" and
# "test cases: 5 | 3 passed | 1 failed | 1 failed as expected".
ALL_PASSED = re.compile(r"^All tests passed \(\d+ assertions? in (\d+) test cases?\)$", re.M)
SOME_FAILED = re.compile(r"^test cases: +\d+ \|(.*)$", re.M)
PASSES = ("OK", "EXPECTEDFAIL")


def cases(output):
    """(passed, failed) of the last Catch2 summary in a program's output; None without one."""
    summaries = [(match.start(), int(match[1]), 0) for match in ALL_PASSED.finditer(output)]
    for match in SOME_FAILED.finditer(output):
        counts = {kind.strip(): int(number) for number, kind in re.findall(r"(\d+) ([a-z ]+)", match[1])}
        passed = counts.get("passed", 0) + counts.get("failed as expected", 0)
        summaries.append((match.start(), passed, counts.get("failed", 0)))
    return max(summaries)[1:] if summaries else None


def count(test):
    """(passed, failed, skipped) of one line of a log."""
    result = test["result"]
    if result == "SKIP":
        return 0, 0, 1
    found = cases(test.get("stdout") or "")
    if result in PASSES:
        return (found[0] if found and found[0] else 1), 0, 0
    return (found[0], max(found[1], 1), 0) if found else (0, 1, 0)


def main(logs):
    passed = failed = skipped = 0
    for log in map(Path, logs):
        lines = log.read_text(errors="replace").splitlines() if log.is_file() else []
        if not lines:
            print(f"no test ran that {log} should tell of", file=sys.stderr)
            failed += 1
        for line in lines:
            p, f, s = count(json.loads(line))
            passed, failed, skipped = passed + p, failed + f, skipped + s
    print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
    return 0 if passed and not failed else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
