"""Checks how the scripts answer to bad input: one clear line, exit code 2 or 1, nothing installed.

Also that README's table names the settings of shim/base/settings.def, all of them and no other.
"""

import os
import re
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def run(script, *arguments, **environment):
    return subprocess.run([ROOT / "scripts" / script, *arguments], capture_output=True, text=True,
                          env={**os.environ, **environment}, timeout=60)


class Scripts(unittest.TestCase):
    def refused(self, code, why, script, *arguments, **environment):
        ran = run(script, *arguments, **environment)
        self.assertEqual(ran.returncode, code, ran)
        self.assertEqual(len(ran.stderr.splitlines()), 1, ran.stderr)
        self.assertIn(why, ran.stderr)

    def test_help(self):
        for script in ("setup", "test", "demo", "bench"):
            ran = run(script, "--help")
            self.assertEqual((ran.returncode, ran.stderr), (0, ""))
            self.assertIn(f"Usage: scripts/{script}", ran.stdout)

    def test_unknown_arguments(self):
        self.refused(2, "no client is called 'nonesuch'", "setup", "nonesuch")
        self.refused(2, "no suite is called 'nonesuch'", "test", "nonesuch")
        self.refused(2, "--sanitize takes address or thread", "test", "--sanitize", "memory")
        self.refused(2, "--sanitize needs", "test", "--sanitize")
        self.refused(2, "no arguments", "demo", "nonesuch")
        self.refused(2, "no option is called '--nonesuch'", "bench", "--nonesuch")

    def test_what_is_missing_is_named_with_what_to_do(self):
        with tempfile.TemporaryDirectory() as empty:
            self.refused(1, "run scripts/setup jax", "client-python", "jax", TIDEPOOL_CACHE=empty)
            self.refused(1, "run scripts/setup", "cuda-include", empty)
            Path(empty, "cuda.h").write_text("#define CUDA_VERSION 12020\n")
            Path(empty, "cudaTypedefs.h").touch()
            self.refused(1, "CUDA 13.0 or later", "cuda-include", empty)
        self.refused(1, "no client is called 'nonesuch'", "client-python", "nonesuch")


class Readme(unittest.TestCase):
    def test_the_table_names_every_setting(self):
        known = set(re.findall(r'"(TIDEPOOL_[A-Z_]+)"', (ROOT / "shim/base/settings.def").read_text()))
        named = set(re.findall(r"^\| `(TIDEPOOL_[A-Z_]+)`", (ROOT / "README.md").read_text(), re.M))
        self.assertEqual(named, known)


if __name__ == "__main__":
    unittest.main()
