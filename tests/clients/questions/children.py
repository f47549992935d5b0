"""Prints which variables of frameworks this process and its children see, by how a child is started."""

import os
import subprocess
import sys

SHOW = "import os; print(*sorted(n for n in os.environ if n.startswith(('XLA_PYTHON', 'TF_FORCE', 'TIDEPOOL_FRAMEWORK_V'))))"


def child(**changes):
    environment = {**os.environ, **changes}
    return subprocess.run([sys.executable, "-c", SHOW], env=environment, capture_output=True, text=True).stdout.strip()


exec("print('itself:', end=' ')\n" + SHOW)
print("child:", child())
print("child that keeps:", child(TIDEPOOL_FRAMEWORKS="keep"))
print("child that only observes:", child(TIDEPOOL_MODE="passthrough"))
print("child that is switched off:", child(TIDEPOOL_MODE="off"))
print("child with a setting of its own:", child(XLA_PYTHON_CLIENT_MEM_FRACTION="0.3"))


def child_without_preload():
    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    return subprocess.run([sys.executable, "-c", SHOW], env=environment, capture_output=True, text=True).stdout.strip()


print("child without the preload:", child_without_preload())
