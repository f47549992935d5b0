"""Makes JAX believe in the simulated device, without a change to the program.

JAX asks jax._src.hardware_utils.has_visible_nvidia_gpu whether a device file exists, and loads its
CUDA plugin only then. The function is replaced when that module is imported; JAX itself is not
imported here, so programs without it pay next to nothing.
"""
import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys

NAME = "jax._src.hardware_utils"


class Loader(importlib.abc.Loader):
    """The module's own loader, and one function more."""

    def __init__(self, loader):
        self.loader = loader

    def create_module(self, spec):
        return self.loader.create_module(spec)

    def exec_module(self, module):
        self.loader.exec_module(module)
        module.has_visible_nvidia_gpu = lambda: True

    def __getattr__(self, name):
        return getattr(self.loader, name)


class Finder(importlib.abc.MetaPathFinder):
    """Looks away from everything but the one module."""

    def find_spec(self, name, path=None, target=None):
        if name != NAME:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec and spec.loader:
            spec.loader = Loader(spec.loader)
        return spec


sys.meta_path.insert(0, Finder())


def run_next():
    """Runs the sitecustomize that this one hides, as Python would have."""
    here = os.path.dirname(os.path.abspath(__file__))
    others = [p for p in sys.path if os.path.abspath(p or os.getcwd()) != here]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", others)
    if spec and spec.loader:
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)


run_next()
