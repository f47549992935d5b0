#!/usr/bin/env python3
"""Writes the linker's version script from hooks.def: the hooks are exported, nothing else, and without
a version (an exported dlsym of one version would be passed by for programs linked to another)."""
import re
import sys

table, script = sys.argv[1:]
with open(table, encoding="utf-8") as file:
    names = re.findall(r"^(?:LOADER_|COMPANION_|PROCESS_)?HOOK\((\w+)", file.read(), re.MULTILINE)
with open(script, "w", encoding="utf-8") as file:
    file.write("{ global:\n" + "".join(f"  {name};\n" for name in names) + "local: *; };\n")
