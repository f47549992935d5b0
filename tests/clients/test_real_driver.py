"""NVIDIA's own driver library, on a machine without a GPU: what it answers is not changed by the shim.

It loads anywhere; its cuInit finds no device and its look-up of entries answers all the same. So these
tests show on the real thing what the simulated driver can only imitate: how its symbols are adopted.

Usage: test_real_driver.py SHIM DOUBLES CUDA_INCLUDE ROOT
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

SHIM, DOUBLES, CUDA_INCLUDE, ROOT = sys.argv[1:5]
SITE = f"{ROOT}/tests/sim/launcher/site"
del sys.argv[1:]
MODES = ["off", "passthrough", "prealloc", "ondemand"]
NO_DEVICE = 100
SKIPPED = 77

# Asks for every base name, version and kind of stream, before and after cuInit. A pointer is shown as the names
# under which dlsym gives the same pointer, and as the library in which it lies.
ASK = r"""
import ctypes, os, sys
names, symbols = (open(path).read().split() for path in sys.argv[1:3])
library = ctypes.CDLL("libcuda.so.1")
class Info(ctypes.Structure):
    _fields_ = [("file", ctypes.c_char_p), ("base", ctypes.c_void_p), ("name", ctypes.c_char_p), ("at", ctypes.c_void_p)]
dladdr = ctypes.CDLL(None).dladdr
def place(pointer):
    info = Info()
    dladdr(ctypes.c_void_p(pointer), ctypes.byref(info))
    return os.path.basename(info.file.decode()).split(".so")[0]
by_address = {}
for symbol in symbols:
    if hasattr(library, symbol):
        by_address.setdefault(ctypes.cast(getattr(library, symbol), ctypes.c_void_p).value, []).append(symbol)
def ask():
    pointer, status = ctypes.c_void_p(), ctypes.c_int()
    for name in names:
        for version in VERSIONS:
            for flags in range(4):
                pointer.value, status.value = 0, -1
                result = library.cuGetProcAddress_v2(name.encode(), ctypes.byref(pointer), version,
                                                     ctypes.c_uint64(flags), ctypes.byref(status))
                shown = "+".join(by_address.get(pointer.value, ["?"])) + " " + place(pointer.value) if pointer.value else "-"
                print(name, version, flags, result, status.value, shown)
ask()
print("cuInit", library.cuInit(0), library.cuInit(1))
ask()
""".replace("VERSIONS", repr([2000, 3020, 4000, 5050, 6050, 7000, 8000, 9020, 10000, 10010, 10020, 11000, 11010, 11020,
                                11030, 12000, 12020, 12030, 12050, 12080, 13000, 99000]))


def folder_of_real_driver():
    found = subprocess.run([f"{ROOT}/scripts/real-driver"], capture_output=True, text=True)
    if found.returncode:
        print("skipped:", found.stderr.strip())
        sys.exit(SKIPPED)
    return found.stdout.strip()


FOLDER = folder_of_real_driver()


def run(command, mode, libraries, **more):
    environment = {**os.environ, "LD_LIBRARY_PATH": libraries, **more}
    if mode:
        environment.update(LD_PRELOAD=SHIM, TIDEPOOL_MODE=mode)
    return subprocess.run(command, env=environment, capture_output=True, text=True)


def hooked():
    return set(re.findall(r"^HOOK\((\w+),", pathlib.Path(ROOT, "shim/hook/hooks.def").read_text(), re.M))


class RealDriver(unittest.TestCase):
    def ask(self, mode):
        typedefs = pathlib.Path(CUDA_INCLUDE, "cudaTypedefs.h").read_text()
        # A name with its ABI in it is asked for too: programs do that, and are told that there is none.
        names = sorted(set(re.findall(r"PFN_(cu\w+?)_v\d+", typedefs))) + ["cuMemAlloc_v2", "cuNoSuchEntry"]
        exported = subprocess.run(["nm", "-D", "--defined-only", f"{FOLDER}/libcuda.so.1"], capture_output=True, text=True)
        symbols = [line.split()[-1] for line in exported.stdout.splitlines() if line.split()[-1].startswith("cu")]
        files = [pathlib.Path(self.folder.name, name) for name in ("names", "symbols")]
        files[0].write_text("\n".join(names))
        files[1].write_text("\n".join(symbols))
        done = run(["/usr/bin/python3", "-c", ASK, *map(str, files)], mode, FOLDER)
        self.assertEqual((done.returncode, done.stderr), (0, ""), mode)
        return done.stdout.splitlines()

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def test_every_look_up_is_answered_as_without_the_shim_but_by_our_wrappers_for_hooked_entries(self):
        plain = self.ask("")
        self.assertTrue(any(line.startswith(f"cuInit {NO_DEVICE} ") for line in plain))
        self.assertGreater(sum(line.endswith(" libcuda") for line in plain), 10000)
        entries = hooked()
        for mode in MODES:
            for before, after in zip(plain, self.ask(mode), strict=True):
                symbols = set(before.split()[5].split("+")) if before.endswith(" libcuda") else set()
                if mode != "off" and symbols & entries:
                    before = before.replace(" libcuda", " libtidepool")
                self.assertEqual(after, before, mode)

    def test_a_cuInit_without_a_device_answers_the_same_in_every_mode(self):
        code = "import ctypes; print(ctypes.CDLL('libcuda.so.1').cuInit(0))"
        for mode in ["", *MODES]:
            done = run(["/usr/bin/python3", "-c", code], mode, FOLDER)
            self.assertEqual((done.stdout, done.stderr, done.returncode), (f"{NO_DEVICE}\n", "", 0), mode)

    def test_JAX_falls_back_to_the_CPU_as_without_the_shim(self):
        python = subprocess.run([f"{ROOT}/scripts/client-python", "jax"], capture_output=True, text=True, check=True)
        code = "import jax; print(jax.devices()[0].platform, jax.numpy.arange(4).sum())"
        # With the doubles of the other libraries, so that JAX gets as far as the driver's own refusal.
        for libraries, site in ((FOLDER, ""), (f"{FOLDER}:{DOUBLES}", SITE)):
            runs = [run([python.stdout.strip(), "-c", code], mode, libraries, PYTHONPATH=site) for mode in ["", *MODES]]
            for mode, done in zip(MODES, runs[1:]):
                self.assertEqual((done.stdout, done.returncode), (runs[0].stdout, 0), mode + done.stderr)
                self.assertEqual(self.messages(done.stderr), self.messages(runs[0].stderr), mode)
            self.assertEqual(runs[0].stdout, "cpu 6\n")
        self.assertIn("CUDA_ERROR_NO_DEVICE", runs[0].stderr)

    def messages(self, text):
        """Without times and thread numbers."""
        return re.sub(r"\d+", "#", text)


unittest.main()
