"""The launcher gives a Python environment every function of NVIDIA's libraries that its own libraries need.

Usage: test_completion.py SIMGPU DOUBLES [COMPILER]
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

SIMGPU, DOUBLES, COMPILER = sys.argv[1:4]
del sys.argv[1:]


class Completion(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        self.packages = self.folder / "environment/lib/python3.11/site-packages"
        self.packages.mkdir(parents=True)
        (self.folder / "environment/pyvenv.cfg").touch()
        (self.folder / "environment/bin").mkdir()
        self.python = self.folder / "environment/bin/python"
        self.python.symlink_to("/usr/bin/python3")
        name = str(self.folder.resolve() / "environment").replace("/", "-")
        completed = pathlib.Path(SIMGPU).parent / "completed"
        self.addCleanup(shutil.rmtree, completed / name, True)
        self.addCleanup((completed / (name + ".lock")).unlink, True)

    def compile(self, out, source, *options):
        path = self.folder / "source.c"
        path.write_text(source)
        subprocess.run([COMPILER, "-x", "c", "-shared", "-fPIC", "-w", "-o", out, path, "-x", "none", *options], check=True)

    def client_of(self, soname, function, version=None):
        """A library in the environment that needs a function of a library which the environment lacks."""
        script = self.folder / "exports.map"
        script.write_text(f"{version} {{ global: *; }};\n" if version else "{ global: *; };\n")
        original = self.folder / soname
        self.compile(original, f"int {function}(void) {{ return 5; }}\n", f"-Wl,-soname,{soname}",
                     f"-Wl,--version-script,{script}")
        self.compile(self.packages / "client.so", f"int {function}(void); int use(void) {{ return {function}(); }}\n",
                     original)
        original.unlink()

    def run_python(self, code):
        done = subprocess.run([SIMGPU, self.python, "-c", "import ctypes; " + code], capture_output=True, text=True,
                              env={**os.environ, "LD_BIND_NOW": "1"})
        self.assertEqual(done.stderr, "")
        return done.stdout.strip()

    def use(self):
        return self.run_python(f"print(ctypes.CDLL('{self.packages}/client.so').use())")

    def test_a_library_without_a_double_is_made_of_functions_that_answer_0(self):
        self.client_of("libnvfunny.so.7", "nvfunnyThing")
        self.assertEqual(self.use(), "0")

    def test_a_function_that_a_double_lacks_is_added_and_its_own_answers_stay(self):
        self.client_of("libcudnn.so.9", "cudnnNeverHeardOf", "libcudnn.so.9")
        self.assertEqual(self.use(), "0")
        self.assertEqual(self.run_python("print(ctypes.CDLL('libcudnn.so.9').cudnnGetVersion())"), "91900")

    def test_what_the_runtime_lacks_answers_not_supported(self):
        self.client_of("libcudart.so.13", "cudaNeverHeardOf", "libcudart.so.13")
        self.assertEqual(self.use(), "801")
        self.assertEqual(self.run_python("n = ctypes.c_int(); print(ctypes.CDLL('libcudart.so.13').cudaGetDeviceCount("
                                         "ctypes.byref(n)), n.value)"), "0 1")

    def test_a_package_that_comes_later_is_completed_too(self):
        self.client_of("libnvfunny.so.7", "nvfunnyThing")
        self.use()
        self.client_of("libnvfunny.so.7", "nvfunnyOther")
        self.assertEqual(self.use(), "0")

    def test_an_environment_that_needs_nothing_gets_nothing(self):
        shown = self.run_python("import os; print(os.environ['LD_LIBRARY_PATH'].split(':')[0])")
        self.assertEqual([path.name for path in pathlib.Path(shown).iterdir()], [".complete"])
        self.assertTrue(pathlib.Path(DOUBLES, "libcuda.so.1").exists())


unittest.main()
