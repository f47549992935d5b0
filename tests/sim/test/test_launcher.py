"""The launcher changes only the environment, and its sitecustomize only the one question of JAX's.

Usage: test_launcher.py SIMGPU
"""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

SIMGPU = sys.argv.pop(1)


def run(*command, **environment):
    return subprocess.run([SIMGPU, *command], env={**os.environ, **environment}, capture_output=True, text=True)


def python(code, **environment):
    return run("/usr/bin/python3", "-c", code, **environment)


class Launcher(unittest.TestCase):
    def test_the_exit_code_is_the_commands(self):
        self.assertEqual(run("sh", "-c", "exit 7").returncode, 7)

    def test_without_a_command_it_says_how_to_use_it(self):
        outcome = run()
        self.assertEqual(outcome.returncode, 2)
        self.assertIn("usage", outcome.stderr)

    def test_the_users_variables_are_kept_behind_ours(self):
        shown = run("sh", "-c", 'echo "$LD_LIBRARY_PATH|$PYTHONPATH|$XLA_FLAGS|$SIM_MEMORY"', LD_LIBRARY_PATH="/mine",
                    PYTHONPATH="/mine/too", XLA_FLAGS="--xla_of_mine", SIM_MEMORY="1GiB").stdout
        libraries, modules, flags, memory = shown.strip().split("|")
        self.assertTrue(libraries.endswith(":/mine") and modules.endswith(":/mine/too"))
        self.assertTrue(flags.startswith("--xla_gpu") and flags.endswith(" --xla_of_mine"))
        self.assertEqual(memory, "1GiB")

    def test_programs_find_the_simulated_driver(self):
        shown = python("import ctypes; l = ctypes.CDLL('libcuda.so.1'); n = ctypes.c_int();"
                       "print(l.cuInit(0), l.cuDeviceGetCount(ctypes.byref(n)), n.value)", SIM_DEVICES="3").stdout
        self.assertEqual(shown, "0 0 3\n")

    def test_another_sitecustomize_still_runs(self):
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "sitecustomize.py").write_text("import sys; sys.mine = 5\n")
            self.assertEqual(python("import sys; print(sys.mine)", PYTHONPATH=folder).stdout, "5\n")

    def test_only_the_question_for_a_device_is_answered(self):
        with tempfile.TemporaryDirectory() as folder:
            package = pathlib.Path(folder, "jax", "_src")
            package.mkdir(parents=True)
            (package.parent / "__init__.py").touch()
            (package / "__init__.py").touch()
            (package / "hardware_utils.py").write_text("def has_visible_nvidia_gpu(): return False\nother = 4\n")
            shown = python("import sys; print('jax' in sys.modules); from jax._src import hardware_utils as h;"
                           "print(h.has_visible_nvidia_gpu(), h.other)", PYTHONPATH=folder).stdout
            self.assertEqual(shown, "False\nTrue 4\n")


unittest.main()
