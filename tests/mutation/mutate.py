#!/usr/bin/env python3
"""Takes one line of the shim away at a time and sees whether the tests notice.

A mutant is a change of a few characters in one source file. Only what that file is compiled into is
compiled again, and the shim linked anew, beside the build and without touching it; then programs run
with that shim. A mutant that no program betrays is a rule that no test holds: exit code 1.

Usage: mutate.py --build DIR --mutants FILE.toml [--only TEXT] [--list]
       mutate.py --check FILE.toml…

The file holds a [runner] table (command, environment, and what betrays a mutant) and [[mutant]] tables:
name, file, old (found exactly once in it), new, programs (arguments of the command), environment.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import time
import tomllib

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Shim:
    """The built shim, and how to build it again with some of its sources replaced."""

    def __init__(self, build):
        self.build = build
        commands = json.loads((build / 'compile_commands.json').read_text())
        self.compile = {}
        for entry in commands:
            self.compile.setdefault((build / entry['file']).resolve(), []).append(entry)
        link = subprocess.run(['ninja', '-C', build, '-t', 'commands', 'shim/libtidepool.so'], check=True,
                              capture_output=True, text=True).stdout.strip().splitlines()[-1]
        self.link = self.open_whole_archives(shlex.split(link))

    def open_whole_archives(self, link):
        """Objects in place of --whole-archive, so that one of them can be replaced."""
        opened, whole = [], False
        for word in link:
            if word in ('-Wl,--whole-archive', '-Wl,--no-whole-archive'):
                whole = word == '-Wl,--whole-archive'
            elif whole and word.endswith('.a'):
                members = subprocess.run(['ar', 't', self.build / word], check=True, capture_output=True, text=True)
                for member in members.stdout.split():
                    opened.append(member if (self.build / member).exists() else str(pathlib.Path(word).parent / member))
            else:
                opened.append(word)
        return opened

    def objects_of(self, source):
        """[(object, compile command)] of what has to be compiled again when this file changes."""
        if source.suffix in ('.cpp', '.S'):
            entries = self.compile[source]
        else:
            deps = subprocess.run(['ninja', '-C', self.build, '-t', 'deps'], check=True, capture_output=True,
                                  text=True).stdout
            users = set()
            for block in deps.split('\n\n'):
                head, *files = block.splitlines() or ['']
                if any((self.build / f.strip()).resolve() == source for f in files):
                    users.add(head.split(':')[0].strip())
            entries = [e for many in self.compile.values() for e in many if e['output'] in users]
        return [(e['output'], e['command'], (self.build / e['file']).resolve()) for e in entries
                if e['output'].startswith(('shim/', 'policies/')) and not e['output'].startswith('shim/cli')]

    def make(self, file, text, folder):
        """The shim's library with `file` reading as `text`."""
        overlay = folder / 'overlay'
        changed = overlay / file
        changed.parent.mkdir(parents=True, exist_ok=True)
        changed.write_text(text)
        replaced, commands = {}, []
        for number, (target, command, source) in enumerate(self.objects_of((ROOT / file).resolve())):
            out = folder / f'{number}.o'
            words = shlex.split(command)
            words[words.index('-o') + 1] = str(out)
            at = words.index('-MD')
            del words[at:at + 5]
            words[-1] = str(changed if source == (ROOT / file).resolve() else source)
            words[words.index('-c'):words.index('-c')] = ['-w']
            first = next(i for i, word in enumerate(words) if word.startswith('-I'))
            words.insert(first, f'-I{overlay}')
            commands.append(words)
            replaced[target] = str(out)
        if not replaced:
            sys.exit(f'mutate.py: nothing of the shim is compiled from {file}')
        # A header is in many sources.
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            for _ in pool.map(lambda words: subprocess.run(words, cwd=self.build, check=True), commands):
                pass
        library = folder / 'libtidepool.so'
        words = [replaced.pop(word, word) for word in self.link]
        words[words.index('-o') + 1] = str(library)
        # Before the archives, whose own member is then not needed.
        words[words.index('-o') + 2:words.index('-o') + 2] = replaced.values()
        subprocess.run(words, cwd=self.build, check=True)
        return library


def betrayed(runner, mutant, library, build):
    """What gave the mutant away, or None."""
    places = {'build': str(build), 'shim': str(library), 'source': str(ROOT)}
    for program in mutant['programs']:
        log = library.parent / 'referee.log'
        log.unlink(missing_ok=True)
        environment = dict(os.environ)
        for name, value in (runner['environment'] | mutant.get('environment', {})).items():
            environment[name] = value.format(**places, log=log)
        command = [word.format(**places) for word in shlex.split(runner['command'] + ' ' + program)]
        try:
            run = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
        except subprocess.TimeoutExpired:
            return f'{program}: it hangs'
        text = (log.read_text() if log.exists() else '') + run.stderr
        for sign in runner['signs']:
            if match := re.search(sign, text):
                return f'{program}: {match.group(0)[:150]}'
        if run.returncode != 0:
            said = (run.stdout.strip() or run.stderr.strip()).splitlines()[-1:]
            return f'{program}: exit code {run.returncode} {"".join(said)[:150]}'
    return None


def check_untouched(runner, mutants, build):
    """Names of programs that complain about the shim as it is: they would prove nothing."""
    tried, wrong = set(), []
    folder = build / 'mutants' / 'untouched'
    folder.mkdir(parents=True, exist_ok=True)
    library = folder / 'libtidepool.so'
    library.write_bytes((build / 'shim' / 'libtidepool.so').read_bytes())
    for mutant in mutants:
        key = json.dumps([mutant['programs'], mutant.get('environment')])
        if key in tried:
            continue
        tried.add(key)
        for program in mutant['programs']:
            if sign := betrayed(runner, mutant | {'programs': [program]}, library, build):
                wrong.append(sign)
    return wrong


def out_of_date(mutant):
    """Why a mutant cannot be made of the sources as they are, or None."""
    count = (ROOT / mutant['file']).read_text().count(mutant['old'])
    if mutant['old'] == mutant['new']:
        return f'OUT OF DATE  {mutant["name"]}: it changes nothing'
    return None if count == 1 else f'OUT OF DATE  {mutant["name"]}: its text is {count} times in {mutant["file"]}'


def check(files):
    complaints = [f'{file}: {said}' for file in files for mutant in tomllib.loads(file.read_text())['mutant']
                  if (said := out_of_date(mutant))]
    print('\n'.join(complaints) if complaints else 'every mutant can be made')
    return len(complaints) > 0


def main():
    options = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    options.add_argument('--build', type=pathlib.Path)
    options.add_argument('--mutants', type=pathlib.Path)
    options.add_argument('--check', type=pathlib.Path, nargs='+', help='only says whether all can be made, without a build')
    options.add_argument('--only', default='', help='mutants whose name holds this text')
    options.add_argument('--list', action='store_true', help='names the mutants and ends')
    options = options.parse_args()
    if options.check:
        return check(options.check)
    if options.build is None or options.mutants is None:
        sys.exit('mutate.py: --build and --mutants are needed; see --help')
    table = tomllib.loads(options.mutants.read_text())
    mutants = [m for m in table['mutant'] if options.only in m['name']]
    if options.list:
        print('\n'.join(m['name'] for m in mutants))
        return 0
    build = options.build.resolve()
    shim = Shim(build)
    if wrong := check_untouched(table['runner'], mutants, build):
        print('The shim as it is does not pass: ' + '; '.join(wrong))
        return 1
    survivors = 0
    for mutant in mutants:
        if said := out_of_date(mutant):
            print(said)
            survivors += 1
            continue
        text = (ROOT / mutant['file']).read_text()
        folder = build / 'mutants' / re.sub(r'\W+', '-', mutant['name'])
        folder.mkdir(parents=True, exist_ok=True)
        began = time.monotonic()
        library = shim.make(mutant['file'], text.replace(mutant['old'], mutant['new']), folder)
        sign = betrayed(table['runner'], mutant, library, build)
        survivors += sign is None
        print(f'{"SURVIVED" if sign is None else "caught"}  {mutant["name"]} ({time.monotonic() - began:.0f} s)'
              f'{"" if sign is None else ": " + sign}', flush=True)
    print(f'{len(mutants) - survivors} of {len(mutants)} mutants caught')
    return survivors > 0


if __name__ == '__main__':
    sys.exit(main())
