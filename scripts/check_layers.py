#!/usr/bin/env python3
"""Checks what a reader of the code relies on: who may include whom, file lengths, opening comments.

Usage: check_layers.py [ROOT]     prints one line per breach; exit code 1 if there is any

The tables below are the design in another form; a new folder needs a line here. They are kept by a
test because a forbidden include compiles as well as any other.
"""

import re
import sys
from pathlib import Path

LONGEST = 400

# Plain data, for everybody in the shim. The rest of policies/ is for those who work with the engine.
PLAIN = ["policies/units.hpp", "policies/result.hpp", "policies/snapshot.hpp"]
BACKING = "policies/backing.hpp"
ENGINE = ["policies/policy.hpp", "policies/catalogue.hpp"]

# Each folder, with its subfolders, and what it may include besides itself: a folder's headers, or a
# single file. Folders from driver to trace are siblings: route hands plain data from one to the other.
BASE = ["shim/base", *PLAIN]
SIBLINGS = ["shim/driver", "shim/ledger", "shim/peers", "shim/report", "shim/trace"]
BELOW_RUNTIME = [*BASE, *SIBLINGS, "shim/route", *ENGINE]
MAY_INCLUDE = {
    "policies": [],
    "shim/base": PLAIN,
    "shim/driver": [*BASE, BACKING],  # puts the driver's memory behind the engine
    "shim/ledger": BASE,
    "shim/peers": BASE,
    "shim/report": BASE,
    "shim/trace": BASE,
    "shim/route": [*BASE, *SIBLINGS, BACKING, *ENGINE],  # calls a Policy, charges what passes its Backing
    "shim": BELOW_RUNTIME,  # runtime: puts the parts together, so it must know them all
    "shim/hook": [*BELOW_RUNTIME, "shim"],
    "shim/audit": ["shim/hook/elf.hpp"],  # a library without libc
    "shim/cli": [*BASE, "shim/peers", "shim/report", "shim/trace"],
}

# Libraries from outside, where they may be used: behind one header of ours, so that they can be
# replaced. policies/ may use the standard library only, see `outside`.
OUTSIDE = {
    "spdlog/": ["shim/base"],
    "fmt/": ["shim/base"],
    "CLI/": ["shim/cli"],
    "nlohmann/": ["shim/report", "shim/peers", "shim/cli"],
    "cuda": ["shim/driver", "shim/route", "shim", "shim/hook"],  # cuda.h, cudaTypedefs.h, …
}

SOURCES = {".cpp", ".hpp", ".h", ".c", ".S", ".def", ".map", ".py", ".sh", ".build"}
LOOKED_AT = ["policies", "shim", "tests", "scripts", ".ci"]
COMMENT = re.compile(r'(//|/\*|#(?!include|pragma|define|if)|"""|;)')
INCLUDE = re.compile(r'^\s*#\s*include\s+([<"])([^>"]+)[>"]')


def is_source(path):
    if path.suffix:
        return path.suffix in SOURCES
    return path.is_file() and path.read_bytes()[:2] == b"#!"  # scripts without a suffix


def layer(name):
    """The folder of the table that a file belongs to, itself or through subfolders; None if there is none."""
    parent = Path(name).parent
    if str(parent) in MAY_INCLUDE:
        return str(parent)
    # "shim" stands for the files directly in it, not for folders that nobody entered in the table.
    above = [str(folder) for folder in parent.parents if str(folder) != "shim"]
    return next((folder for folder in above if folder in MAY_INCLUDE), None)


def inside(folder, name):
    """Why `folder` may not include our file `name`, or None."""
    owner = layer(name)
    if owner == folder or owner in MAY_INCLUDE[folder] or name in MAY_INCLUDE[folder]:
        return None
    return f"{folder} may not include {name}" if owner else f"{name} is in no folder of the table"


def outside(folder, name):
    """Why `folder` may not include <name>, or None."""
    if folder == "policies" and not re.fullmatch(r"[a-z_]+", name):
        return f"policies may include the C++ standard library only, not <{name}>"
    for start, folders in OUTSIDE.items():
        if name.startswith(start) and folder not in folders:
            return f"{folder} may not include <{name}>, only {', '.join(folders)}"
    return None


def edges(root, path):
    """Breaches of the include rule in one file of policies/ or shim/."""
    name = path.relative_to(root)
    folder = layer(name)
    if not folder:
        yield 1, f"folder {name.parent} is not in the table of {Path(__file__).name}"
        return
    for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
        if match := INCLUDE.match(line):
            kind, name = match.groups()
            if kind == '"' and "/" not in name:  # beside the including file
                name = f"{path.relative_to(root).parent}/{name}"
            why = inside(folder, name) if kind == '"' else outside(folder, name)
            if why:
                yield number, why


def shape(path):
    """Breaches of length and opening in one source file."""
    lines = path.read_text(errors="replace").splitlines()
    if len(lines) > LONGEST:
        yield len(lines), f"longer than {LONGEST} lines: it does more than one thing"
    opening = next((line for line in lines if line.strip() and not line.startswith("#!")), "")
    if not COMMENT.match(opening.strip()):
        yield 1, "does not open with a comment that says what it is for"


def breaches(root):
    files = [path for top in LOOKED_AT for path in sorted((root / top).rglob("*")) if path.is_file()]
    for path in [*files, *root.glob("meson*")]:
        if "__pycache__" in path.parts or not is_source(path):
            continue
        found = list(shape(path))
        if path.suffix != ".build" and path.relative_to(root).parts[0] in ("policies", "shim"):
            found += edges(root, path)
        for number, why in found:
            yield f"{path.relative_to(root)}:{number}: {why}"


def main():
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent.parent).resolve()
    found = list(breaches(root))
    print("\n".join(found) or "include edges, file lengths and opening comments are as they should be")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
