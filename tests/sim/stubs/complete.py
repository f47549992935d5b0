#!/usr/bin/env python3
"""Completes the doubles of NVIDIA's libraries by what the programs of one Python environment need.

What a client links against is written in its own libraries: the names it wants, and for most of them the
library that must have each (ELF version needs). So no list is kept here: names that a double lacks are
added to it, and a library without any double is made, out of functions that do nothing and answer 0.
In the runtime, which has behaviour, they answer cudaErrorNotSupported instead, as the simulated driver's
entries do. A double is linked anew from the object that the build left beside it. Names without a
version are given to the library whose name begins like theirs (ncclBroadcast, libnccl.so.2).

Usage: complete.py --environment FOLDER --doubles FOLDER --out FOLDER [--compiler c++]
"""
import argparse
import fcntl
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

NOT_SUPPORTED = 801  # cudaErrorNotSupported
NEEDED = re.compile(r'\(NEEDED\).*\[(.+)\]')
WANTED = re.compile(r'^ +U (\w+)(?:@(\S+))?$', re.M)
VERSION_FILE = re.compile(r'File: (\S+) ')
VERSION_NAME = re.compile(r'Name: (\S+) ')
# Letters that a name and a library must share: "cuda" does not make a function libcudart's.
FEWEST_IN_COMMON = 4


def output(*command):
    """What a program wrote; files that are no libraries after all tell nothing."""
    return subprocess.run(command, capture_output=True, text=True, errors='replace').stdout


def is_elf(path):
    with open(path, 'rb') as file:
        return file.read(4) == b'\x7fELF'


def libraries_of(environment):
    return [path for path in sorted(environment.glob('lib/python*/site-packages/**/*.so*'))
            if path.is_file() and re.search(r'\.so(\.\d+)*$', path.name) and is_elf(path)]


def version_needs(path):
    """version -> the library that it must come from."""
    needs, file = {}, None
    for line in output('readelf', '-VW', str(path)).splitlines():
        if found := VERSION_FILE.search(line):
            file = found[1]
        elif file and (found := VERSION_NAME.search(line + ' ')):
            needs[found[1]] = file
    return needs


def defined_in(paths):
    names = set()
    for path in paths:
        names |= {line.split()[-1].split('@')[0]
                  for line in output('nm', '-D', '--defined-only', str(path)).splitlines()}
    return names


def in_common(name, soname):
    """How many first letters a function and a library share: ncclBroadcast and libnccl.so.2."""
    stem = soname.removeprefix('lib').split('.so')[0]
    return len(os.path.commonprefix([name.lower(), stem.lower()]))


def needs_of(libraries, doubles):
    """soname -> name -> version or None, of all that the environment does not bring itself."""
    own = {path.name for path in libraries}
    # A CUDA toolkit of this machine is not the system: its runtime would refuse the simulated driver.
    on_system = set(re.findall(r'^\s+(\S+) \(.* => (?:/usr)?/lib', output('/sbin/ldconfig', '-p'), re.M))
    needed = {path: set(NEEDED.findall(output('readelf', '-dW', str(path)))) for path in libraries}
    foreign = {name for names in needed.values() for name in names}
    foreign = {name for name in foreign - own if name in doubles or name not in on_system}
    foreign.discard('libcuda.so.1')  # the simulated driver is whole: generated from its header

    wanted = {name: {} for name in foreign}
    unversioned = {}
    for path, names in needed.items():
        if not names & foreign:
            continue
        versions = version_needs(path)
        for name, version in WANTED.findall(output('nm', '-D', '-u', '--with-symbol-versions', str(path))):
            if version and versions.get(version) in foreign:
                wanted[versions[version]][name] = version
            elif not version:
                unversioned.setdefault(name, set()).update(names & foreign)
    for name in unversioned.keys() - defined_in(libraries):
        best = max(sorted(unversioned[name]), key=lambda soname: in_common(name, soname))
        if in_common(name, best) >= FEWEST_IN_COMMON:
            wanted[best].setdefault(name, None)
    return wanted


def build(soname, names, doubles, out, compiler):
    """One library: the double's own functions, if there is one, and `names` that do nothing."""
    answers = [str(doubles / (soname + ending)) for ending in ('.o', '.a') if (doubles / (soname + ending)).exists()]
    result = NOT_SUPPORTED if soname.startswith('libcudart.') else 0
    missing = sorted(names.keys() - (defined_in([doubles / soname]) if answers else set()))
    if answers and not missing:
        return
    with tempfile.TemporaryDirectory() as scratch:
        source, exports = pathlib.Path(scratch, 'rest.c'), pathlib.Path(scratch, 'exports.map')
        source.write_text(''.join(f'long {name}(void) {{ return {result}; }}\n' for name in missing))
        first, *others = sorted({version for version in names.values() if version}) or ['']
        nodes = [f'{first} {{ global: *; }};'] + [
            f'{node} {{ global: {"; ".join(n for n, v in names.items() if v == node)}; }};' for node in others]
        exports.write_text('\n'.join(nodes) + '\n')
        command = [compiler, '-shared', '-fPIC', '-fno-builtin', '-w', '-x', 'c', str(source), '-x', 'none',
                   '-Wl,--whole-archive', *answers, '-Wl,--no-whole-archive', '-Wl,-Bsymbolic',
                   f'-Wl,-soname,{soname}', f'-Wl,--version-script,{exports}',
                   '-static-libstdc++', '-static-libgcc', '-o', str(out / soname)]
        made = subprocess.run(command, capture_output=True, text=True)
    if made.returncode:
        sys.exit(f'complete.py: {soname} cannot be made for {out}: {made.stderr}')


def main():
    options = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    for name in ('environment', 'doubles', 'out'):
        options.add_argument('--' + name, required=True, type=pathlib.Path)
    options.add_argument('--compiler', default='c++')
    options = options.parse_args()
    options.out.parent.mkdir(parents=True, exist_ok=True)
    with open(f'{options.out}.lock', 'w') as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        stamp = options.out / '.complete'
        before = [options.doubles, *options.environment.glob('lib/python*/site-packages'), pathlib.Path(__file__)]
        if stamp.exists() and all(stamp.stat().st_mtime > path.stat().st_mtime for path in before):
            return  # another process was faster
        shutil.rmtree(options.out, ignore_errors=True)
        options.out.mkdir()
        doubles = {path.name for path in options.doubles.glob('*.so.*')}
        for soname, names in needs_of(libraries_of(options.environment), doubles).items():
            if names:
                build(soname, names, options.doubles, options.out, options.compiler)
        stamp.touch()


if __name__ == '__main__':
    main()
