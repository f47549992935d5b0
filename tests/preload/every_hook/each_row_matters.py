#!/usr/bin/env python3
"""Proves that no row of hooks.def can be removed without a test of behaviour failing.

Usage: each_row_matters.py --table hooks.def --shim libtidepool.so --hooks TEST --coverage TEST [--all]

A shim without a row is made from the built one, in milliseconds: the row's name in the compiled table
becomes empty, so that the driver's symbol is not redirected, and the export of that name is taken back.
That is what is left of a row whose wrapper is removed too (without that, it does not link). Then the tests
must fail. By default every eighth row is tried, and none of the loader's or the process's; --all takes about a minute.
"""
import argparse
import os
import re
import struct
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

SAMPLE = 8
WORKERS = 2
TABLE_SYMBOL = b"_ZN8tidepool6kHooksE"
ROW_SIZE = 16  # a pointer to the name, the version, a flag
SHT_SYMTAB, SHT_STRTAB, SHT_RELA, SHT_DYNSYM = 2, 3, 4, 11


class SharedObject:
    """The parts of a 64-bit little-endian ELF file that are read or changed here."""

    def __init__(self, data):
        self.data = bytearray(data)
        offset, = struct.unpack_from("<Q", data, 0x28)
        size, count, _ = struct.unpack_from("<HHH", data, 0x3A)
        names = ("name", "type", "flags", "address", "offset", "size", "link", "info", "align", "entry")
        self.sections = [dict(zip(names, struct.unpack_from("<IIQQQQIIQQ", data, offset + i * size)))
                         for i in range(count)]

    def symbols(self, kind):
        """(offset in the file, name, value) of each symbol."""
        for table in (s for s in self.sections if s["type"] == kind):
            strings = self.sections[table["link"]]["offset"]
            for at in range(table["offset"], table["offset"] + table["size"], table["entry"]):
                name, _, _, _, value, _ = struct.unpack_from("<IBBHQQ", self.data, at)
                end = self.data.index(b"\0", strings + name)
                yield at, bytes(self.data[strings + name:end]), value

    def relocations(self):
        """(offset in the file of the addend, where it applies, addend)."""
        for table in (s for s in self.sections if s["type"] == SHT_RELA):
            for at in range(table["offset"], table["offset"] + table["size"], 24):
                place, _, addend = struct.unpack_from("<QQq", self.data, at)
                yield at + 16, place, addend


def without_export(image, name):
    """Undefined, so that no look-up finds it."""
    for at, symbol, _ in image.symbols(SHT_DYNSYM):
        if symbol == name.encode():
            struct.pack_into("<HQ", image.data, at + 6, 0, 0)
            return
    sys.exit(f"{name} is not exported")


def without_row(image, name, index):
    table = next(value for _, symbol, value in image.symbols(SHT_SYMTAB) if symbol == TABLE_SYMBOL)
    for at, place, addend in image.relocations():
        if place == table + index * ROW_SIZE:
            struct.pack_into("<q", image.data, at, addend + len(name))  # the zero that ends it
            return
    sys.exit(f"row {index} ({name}) of the compiled table was not found")


def fails(test, cases, shim):
    ran = subprocess.run([test, *cases], env={**os.environ, "SHIM_UNDER_TEST": str(shim)}, text=True,
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300, check=False)
    if "No test cases matched" in ran.stdout:
        sys.exit(f"{test} has no such case: {cases}")
    return ran.returncode != 0


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    for name in ("table", "shim", "hooks", "coverage"):
        options.add_argument("--" + name, required=True)
    options.add_argument("--all", action="store_true")
    options = options.parse_args()
    table = Path(options.table).read_text(encoding="utf-8")
    hooks = re.findall(r"^HOOK\((\w+), (\w+), \d+\)", table, re.M)
    loader = re.findall(r"^(?:LOADER|COMPANION)_HOOK\((\w+)\)", table, re.M)
    process = re.findall(r"^PROCESS_HOOK\((\w+)\)", table, re.M)
    built = Path(options.shim).read_bytes()

    def is_missed(folder, name, family, index):
        image = SharedObject(built)
        without_export(image, name)
        if family:
            without_row(image, name, index)
        shim = Path(folder, name, "libtidepool.so")
        shim.parent.mkdir()
        shim.write_bytes(image.data)
        if name in process:
            return fails(options.hooks, ["a process that ends*,a program that is started*"], shim)
        case = "a driver that is out of memory*" if family == "launch" else "every entry of the table*"
        return fails(options.hooks, [case], shim) if family else fails(options.coverage, [], shim)

    rows = [(name, family, i) for i, (name, family) in enumerate(hooks)]
    chosen = [*rows, *((name, None, 0) for name in loader + process)] if options.all else rows[::SAMPLE]
    if fails(options.hooks, [], options.shim):
        sys.exit("the tests fail with the whole table; nothing is proven by that")
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(WORKERS) as pool:
        missed = list(pool.map(lambda row: is_missed(folder, *row), chosen))
    unmissed = [name for (name, _, _), was in zip(chosen, missed) if not was]
    for name in unmissed:
        print(f"{name}: no test fails without this row")
    print(f"{len(chosen)} of {len(rows) + len(loader + process)} rows tried, {len(unmissed)} of them unmissed")
    return 1 if unmissed or not chosen else 0


if __name__ == "__main__":
    sys.exit(main())
