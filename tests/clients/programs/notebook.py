"""Runs jax_notebook.ipynb as `jupyter execute` does for anyone, and prints what its cells showed.

The kernel that allocates is a grandchild of this process. The notebook is copied first, since its
outputs are written into it.
"""

import json
import pathlib
import shutil
import subprocess
import sys
import tempfile


def main():
    notebook = pathlib.Path(__file__).with_name("jax_notebook.ipynb")
    with tempfile.TemporaryDirectory() as folder:
        copy = shutil.copy(notebook, folder)
        jupyter = pathlib.Path(sys.executable).with_name("jupyter")
        # The kernel is this environment's, found by its own specification.
        done = subprocess.run([jupyter, "execute", "--inplace", copy], check=False)
        for number, cell in enumerate(json.loads(pathlib.Path(copy).read_text())["cells"]):
            for output in cell.get("outputs", []):
                shown = output.get("text") or output.get("data", {}).get("text/plain") or [output.get("ename", "")]
                print(f"cell {number}: {''.join(shown).strip()}")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
