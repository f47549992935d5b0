"""Proves that scripts/check_layers.py can fail: each rule is broken once in a tree of its own.

A checker that has silently stopped looking would pass on the real tree, so this runs beside it.
"""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

CHECKER = Path(__file__).resolve().parents[3] / "scripts" / "check_layers.py"
GOOD = "// A file of the tree under test.\n"


def check(files):
    """Exit code and output of the checker on a tree of the given files."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in files.items():
            path = Path(folder) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        ran = subprocess.run([sys.executable, CHECKER, folder], capture_output=True, text=True)
        return ran.returncode, ran.stdout


class CheckLayers(unittest.TestCase):
    def breach(self, name, text, why):
        code, output = check({name: text})
        self.assertEqual(code, 1, output)
        self.assertIn(f"{name}:", output)
        self.assertIn(why, output)

    def include(self, name, include, why):
        self.breach(name, GOOD + f"#include {include}\n", why)

    def test_allowed_edges_pass(self):
        code, output = check({
            "policies/arena.cpp": GOOD + '#include <vector>\n#include "policies/units.hpp"\n',
            "shim/driver/vmm.cpp": GOOD + '#include <cuda.h>\n#include "policies/backing.hpp"\n',
            "shim/route/router.cpp": GOOD + '#include "policies/policy.hpp"\n#include "shim/ledger/ledger.hpp"\n',
            "shim/hook/memory.cpp": GOOD + '#include "shim/runtime.hpp"\n#include "hooks.def"\n',
            "shim/hook/x86/jump.cpp": GOOD + '#include "shim/hook/hooks.hpp"\n#include "local.hpp"\n',
            "tests/unit/any.cpp": GOOD + '#include "shim/hook/any.hpp"\n',
        })
        self.assertEqual(code, 0, output)

    def test_policies_use_the_standard_library_only(self):
        for header in ("<cuda.h>", "<unistd.h>", "<spdlog/spdlog.h>"):
            self.include("policies/arena.cpp", header, "standard library only")
        self.include("policies/arena.cpp", '"shim/base/log.hpp"', "policies may not include shim/base/log.hpp")

    def test_lower_folders_do_not_look_up(self):
        self.include("shim/base/log.cpp", '"shim/route/router.hpp"', "shim/base may not include")
        self.include("shim/route/router.cpp", '"shim/runtime.hpp"', "shim/route may not include")
        self.include("shim/runtime.cpp", '"shim/hook/lookup.hpp"', "shim may not include")

    def test_siblings_do_not_know_each_other(self):
        self.include("shim/ledger/ledger.cpp", '"shim/driver/driver.hpp"', "shim/ledger may not include")
        self.include("shim/report/oom.cpp", '"shim/peers/peers.hpp"', "shim/report may not include")

    def test_the_engine_is_for_route_and_its_backing_for_driver_too(self):
        self.include("shim/ledger/ledger.cpp", '"policies/policy.hpp"', "shim/ledger may not include")
        self.include("shim/driver/driver.cpp", '"policies/policy.hpp"', "shim/driver may not include")
        self.include("shim/ledger/ledger.cpp", '"policies/backing.hpp"', "shim/ledger may not include")

    def test_outside_libraries_have_their_place(self):
        self.include("shim/ledger/ledger.cpp", "<spdlog/spdlog.h>", "only shim/base")
        self.include("shim/base/log.cpp", "<cuda.h>", "may not include <cuda.h>")

    def test_unknown_folders_are_reported(self):
        self.breach("shim/new/thing.cpp", GOOD, "not in the table")

    def test_length_and_opening(self):
        self.breach("tests/unit/long.cpp", GOOD * 401, "longer than 400 lines")
        self.breach("tests/unit/bare.cpp", "int main() {}\n", "does not open with a comment")
        self.breach("scripts/tool", "#!/bin/sh\nset -eu\n", "does not open with a comment")


if __name__ == "__main__":
    unittest.main()
