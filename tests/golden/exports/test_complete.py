"""Checks the hook table against cuda.h: every entry that has to do with memory is hooked, or stands here with
the reason why it needs no hook; and each row's version is the one that cudaTypedefs.h gives its ABI.

A new toolkit's new entries make it fail until somebody has decided about them.

Usage: test_complete.py TABLE CUDA_INCLUDE COMPILER...
"""

import re
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests" / "sim"))
import generate  # noqa: E402  (reads cuda.h for the simulated driver)

ABOUT_MEMORY = re.compile(
    r"cu(Mem|Array|Mipmapped|Ipc|Pointer|Multicast|Ctx|GreenCtx|DevicePrimaryCtx|Module(Load|Get|Unload)|Library|"
    r"ImportExternalMemory|ExternalMemory|DestroyExternalMemory|Stream(Create|Destroy|BeginCapture|EndCapture|Attach)|"
    r"Event(Create|Destroy)|Launch|FuncLoad|KernelGetFunction|Graph.*Mem|GraphAddNode|GraphInstantiate|GraphUpload|"
    r"GraphLaunch|GraphExecUpdate|Device.*Mem|DeviceTotalMem|GetProcAddress|Init$)")

# A whole name each, to be matched without the ABI's suffix (_v2, _ptsz, ...).
NEEDS_NO_HOOK = {
    "reads and writes memory, does not take it": [
        r"cuMemcpy\w*", r"cuMemset\w*", "cuMemBatchDecompressAsync", r"cuGraphAdd(Memcpy|Memset|BatchMemOp)Node",
        r"cuGraph(Exec)?(Memcpy|Memset|BatchMemOp)Node[GS]etParams"],
    "a question about an object that is the driver's": [
        r"cuArray(3D)?GetDescriptor", r"c(uArray|uMipmappedArray)Get(MemoryRequirements|SparseProperties)",
        "cuArrayGetPlane", "cuMipmappedArrayGetLevel", "cuMemHostGetFlags", r"cuMemRangeGetAttributes?",
        "cuGraphMemAllocNodeGetParams", "cuGraphMemFreeNodeGetParams", r"cuDevicePrimaryCtx(GetState|SetFlags)",
        r"cuModuleGet(FunctionCount|LoadingMode|SurfRef|TexRef)", r"cuLibrary(GetKernelCount|EnumerateKernels)",
        "cuLibraryGetKernel", "cuLibraryGetUnifiedFunction"],
    "a question about the hardware, whose answer stays the driver's": [
        "cuMemGetAllocationGranularity", "cuMulticastGetGranularity", "cuDeviceTotalMem"],
    "gives back what the driver took for itself": ["cuModuleUnload", "cuLibraryUnload", "cuEventDestroy"],
    "shares an event, not memory": ["cuIpcGetEventHandle", "cuIpcOpenEventHandle"],
    "chooses, asks or waits, and neither makes nor ends a context": [
        r"cu(Green)?CtxGet\w*", r"cuCtxSet(CacheConfig|Current|Flags|SharedMemConfig)", r"cuCtx(Push|Pop)Current",
        r"cu(Green)?Ctx(RecordEvent|WaitEvent)", "cuCtxSynchronize", "cuCtxResetPersistingL2Cache"],
    "counts one more user of a context that lives already; deprecated": ["cuCtxAttach"],
    "calls a function of the program's": ["cuLaunchHostFunc"],
}
SUFFIX = re.compile(r"(_v\d+)?(_ptsz|_ptds)?$")


def rows(table):
    return dict(re.findall(r"^HOOK\((\w+), \w+, (\d+)\)", Path(table).read_text(encoding="utf-8"), re.M))


def needs_none(name):
    base = SUFFIX.sub("", name)
    return any(re.fullmatch(pattern, base) for patterns in NEEDS_NO_HOOK.values() for pattern in patterns)


class Complete(unittest.TestCase):
    table, include, compiler = None, None, None

    @classmethod
    def setUpClass(cls):
        cls.declared = generate.read_declarations(generate.preprocess(cls.compiler, [cls.include]))
        cls.hooks = rows(cls.table)

    def test_every_entry_about_memory_is_hooked_or_has_a_reason(self):
        asked = [name for name in self.declared if ABOUT_MEMORY.match(name)]
        self.assertGreater(len(asked), 300)
        undecided = [name for name in asked if name not in self.hooks and not needs_none(name)]
        self.assertEqual(undecided, [], "hook them in hooks.def, or say above why not")

    def test_no_reason_is_left_over(self):
        self.assertEqual([name for name in self.hooks if needs_none(name)], [], "hooked, and said to need no hook")
        for patterns in NEEDS_NO_HOOK.values():
            for pattern in patterns:
                self.assertTrue(any(re.fullmatch(pattern, SUFFIX.sub("", name)) for name in self.declared), pattern)

    def test_versions_are_those_of_the_typedefs(self):
        names = generate.resolution(list(self.declared), generate.read_versions([self.include]))
        since = {name: str(version) for _, version, _, name in names}
        self.assertEqual(self.hooks, {name: since.get(name) for name in self.hooks})


if __name__ == "__main__":
    Complete.table, Complete.include, *Complete.compiler = sys.argv[1:]
    unittest.main(argv=sys.argv[:1])
