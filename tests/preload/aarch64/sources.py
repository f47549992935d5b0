#!/usr/bin/env python3
"""Prints the shim's sources, one a line, as the native build lists them folder by folder."""
import sys
from pathlib import Path

root = Path(sys.argv[1])
folders = [root / "policies", root / "shim"]
left_out = {"cli", "audit"}  # a program, and a library of its own
print("\n".join(str(path) for folder in folders for path in sorted(folder.rglob("*.cpp"))
                if path.relative_to(root).parts[1] not in left_out))
