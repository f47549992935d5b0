#!/usr/bin/env python3
"""Turns NVIDIA's headers into the surface of the simulated driver.

cuda.h says which entries exist and how they are called, cudaTypedefs.h since which version each
ABI exists. Nothing here is a list kept by hand, so that a new toolkit brings its new entries
along. Written into the output folder:

  entries.hpp        namespace sim::entry: one declaration per export that is implemented (SIM_ENTRY)
  exports_N.cpp    the exported functions: count, check, call the implementation, log
  names.inc        entry names in export order, for counters
  errors.inc       error codes and their names
  resolution.inc   what cuGetProcAddress knows: base name, version, kind of stream, address
  exports.map      version script of the library

Usage: generate.py --cuda-include DIR... --sources FILE... --out DIR [--compiler COMMAND...]
"""
import argparse
import collections
import pathlib
import re
import subprocess
import sys

# Entries that answer before cuInit. Everything else is refused with NOT_INITIALIZED, as cuda.h says.
BEFORE_INIT = {'cuInit', 'cuDriverGetVersion', 'cuGetErrorString', 'cuGetErrorName', 'cuGetProcAddress',
               'cuGetProcAddress_v2', 'cuGetExportTable', 'cuLogsRegisterCallback',
               'cuLogsUnregisterCallback', 'cuLogsCurrent', 'cuLogsDumpToFile', 'cuLogsDumpToMemory'}
# Parameters that give back one pointer; other void** are arrays.
POINTERS_OUT = {('void **', 'pp'), ('void **', 'pfn')}
# What the cost model takes for the size of a call (SIM_COST).
SIZES = ('size', 'bytesize', 'ByteCount')
# Files that the exported functions are spread over: they compile side by side.
PARTS = 4
SUFFIX = re.compile(r'(_ptsz|_ptds)$')


def preprocess(compiler, includes):
    source = '#include <cuda.h>\n#include <cudaProfiler.h>\n'
    # With this macro cuda.h neither renames entries to their newest ABI nor hides the older ones.
    command = [*compiler, '-x', 'c++', '-E', '-P', '-D__CUDA_API_VERSION_INTERNAL', '-']
    for folder in includes:
        command += ['-isystem', folder]
    return subprocess.run(command, input=source, text=True, check=True, capture_output=True).stdout


def split_parameters(text):
    """[(type, name)] of a C parameter list; every parameter of cuda.h has a name."""
    if text.strip() in ('', 'void'):
        return []
    found = []
    for parameter in text.split(','):
        match = re.fullmatch(r'\s*(.*?)(\w+)\s*(\[\s*\])?\s*', parameter, re.S)
        if not match:
            sys.exit(f'generate.py: cannot read the parameter "{parameter}"')
        kind, name, array = match.groups()
        found.append((' '.join(kind.split()) + ('*' if array else ''), name))
    return found


def read_declarations(text):
    found = {}
    for name, parameters in re.findall(r'\bCUresult\s+(cu[A-Z]\w*)\s*\(([^()]*)\)\s*;', text):
        found[name] = split_parameters(parameters)
    return dict(sorted(found.items()))


def read_versions(includes):
    """base name -> suffix -> sorted versions at which an ABI of it appeared."""
    versions = collections.defaultdict(lambda: collections.defaultdict(set))
    for header in ('cudaTypedefs.h', 'cudaProfilerTypedefs.h'):
        path = next((pathlib.Path(i, header) for i in includes if pathlib.Path(i, header).exists()), None)
        if path is None:
            sys.exit(f'generate.py: {header} not found in {includes}')
        for base, version, suffix in re.findall(r'PFN_(cu\w+?)_v(\d+)(_ptsz|_ptds)?\)', path.read_text()):
            versions[base][suffix].add(int(version))
    return versions


def resolution(names, versions):
    """[(base, version, suffix, symbol)]: the k-th version of a base is the k-th of its exported ABIs.

    This agrees with every row which the real driver answered (tests compare)."""
    abis = collections.defaultdict(list)
    for name in names:
        base, number, suffix = re.fullmatch(r'(cu\w+?)(?:_v(\d+))?(_ptsz|_ptds)?', name).groups()
        abis[base, suffix or ''].append((int(number or 1), name))
    rows = []
    for (base, suffix), exports in sorted(abis.items()):
        since = sorted(versions[base][suffix])
        if len(since) != len(exports):
            sys.exit(f'generate.py: {base}{suffix} has {len(exports)} exports but versions {since}')
        rows += [(base, version, suffix, name) for version, (_, name) in zip(since, sorted(exports))]
    return rows


def read_errors(text):
    """[(code, name, text)]; the driver's own texts are not in any header, so they say the name in words."""
    body = re.search(r'enum cudaError_enum\s*{(.*?)}', text, re.S).group(1)
    names = re.findall(r'(CUDA_\w+)\s*=\s*\d+', body)
    return [(n, n, 'no error' if n == 'CUDA_SUCCESS' else n.replace('CUDA_ERROR_', '').replace('_', ' ').lower())
            for n in names]


def signature(parameters):
    return ', '.join(f'{kind} {name}' for kind, name in parameters) or 'void'


def exported_function(name, parameters, implemented, declared):
    """The text of one exported function.

    A per-thread-default-stream twin runs the implementation of its base, told so by the scope."""
    base = SUFFIX.sub('', name)
    target, scope = (name, '') if name in implemented else (None, '')
    if target is None and base != name and base in implemented and \
            [k for k, _ in declared[base]] == [k for k, _ in parameters]:
        target, scope = base, '  PerThreadScope per_thread;\n'
    arguments = ', '.join(n for _, n in parameters)
    logged = ', '.join(f'{"pointer_out" if (k, n) in POINTERS_OUT else "argument"}("{n}", {n})' for k, n in parameters)
    gate = 'always' if name in BEFORE_INIT else 'initialized'
    text = f'extern "C" SIM_EXPORT CUresult {name}({signature(parameters)}) {{\n'
    text += f'  Call call(Name::{name}, Gate::{gate});\n'
    if target:
        text += scope + f'  if (call.open()) call.result = entry::{target}({arguments});\n'
    else:
        text += '  call.unsupported();\n'
        text += ''.join(f'  static_cast<void>({n});\n' for _, n in parameters)
    size = next((n for k, n in parameters if k == 'size_t' and n in SIZES), '0')
    text += f'  if (call.open()) call.charge({size});\n'
    text += f'  if (call.logged()) call.log({{{logged}}});\n  return call.result;\n}}\n\n'
    return text


def main():
    options = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    options.add_argument('--cuda-include', nargs='+', required=True)
    options.add_argument('--sources', nargs='+', required=True)
    options.add_argument('--out', required=True)
    options.add_argument('--compiler', nargs='+', default=['g++'], help='a command, such as: ccache g++')
    options = options.parse_args()
    out = pathlib.Path(options.out)

    text = preprocess(options.compiler, options.cuda_include)
    declared = read_declarations(text)
    implemented = set()
    for source in options.sources:
        implemented |= set(re.findall(r'\bSIM_ENTRY\((\w+)\)', pathlib.Path(source).read_text()))
    implemented.discard('name')  # the definition of the macro itself
    for name in sorted(implemented - declared.keys()):
        sys.exit(f'generate.py: SIM_ENTRY({name}) is no entry of this cuda.h')
    names = list(declared)

    header = '// Generated from cuda.h: the entries with an implementation.\n#pragma once\n#include <cuda.h>\n' \
             '#include <cudaProfiler.h>\n#define SIM_ENTRY(name) sim::entry::name\nnamespace sim::entry {\n'
    header += ''.join(f'CUresult {n}({signature(declared[n])});\n' for n in names if n in implemented)
    (out / 'entries.hpp').write_text(header + '}\n')
    (out / 'names.inc').write_text(''.join(f'SIM_NAME({n})\n' for n in names))
    (out / 'resolution.inc').write_text(''.join(
        f'{{"{base}", {version}, {"true" if suffix else "false"}, "{name}", address({name})}},\n'
        for base, version, suffix, name in resolution(names, read_versions(options.cuda_include))))
    (out / 'errors.inc').write_text(''.join(f'SIM_ERROR({c}, "{n}", "{t}")\n' for c, n, t in read_errors(text)))
    (out / 'exports.map').write_text('{ global: cu[A-Z]*; sim[A-Z]*; local: *; };\n')
    for part in range(PARTS):
        text = '// Generated from cuda.h: exported functions.\n#include "entries.hpp"\n#include "call.hpp"\n' \
               'namespace sim {\n'
        text += ''.join(exported_function(n, declared[n], implemented, declared) for n in names[part::PARTS])
        (out / f'exports_{part}.cpp').write_text(text + '}\n')


if __name__ == '__main__':
    main()
