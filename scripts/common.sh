# shellcheck shell=bash
# What the scripts share: where things are kept, how they speak, whether there is a GPU.
# Sourced, never run; the caller sets `set -euo pipefail` itself.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
export root
# Outside the repository, so that every checkout of a machine shares one download.
cache=${TIDEPOOL_CACHE:-${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/tidepool-dev}
requirements=$root/tests/clients/requirements

say() { printf '%s\n' "$*"; }

# One line that says what is wrong and what to do, and the end of the script.
fail() {
  printf '%s: %s\n' "$(basename "$0")" "$*" >&2
  exit 1
}

megabytes() { du -sm "$1" 2>/dev/null | cut -f1 || true; }

# The driver and a device that answers: then programs run on the real thing, else on the simulated GPU.
has_gpu() {
  [ -e /dev/nvidiactl ] || return 1
  # Read to its end: with pipefail, ldconfig dying of SIGPIPE behind a `grep -q` would mean "no".
  PATH=$PATH:/sbin:/usr/sbin ldconfig -p 2>/dev/null | grep 'libcuda\.so\.1' >/dev/null
}

# venv_is_ready NAME: complete, and made from the requirements as they are now.
venv_is_ready() {
  local wanted
  wanted=$(sha256sum <"$requirements/$1.txt" | cut -d' ' -f1)
  [ "$(cat "$cache/venvs/$1/.complete" 2>/dev/null)" = "$wanted" ]
}

# What pip and apt-get say of each download, of apt-get's many only those of 1 MB or more.
downloads='s/^ +(Downloading .*\))$/  \1/p; s/^Get:[0-9]+ [^ ]+ [^ ]+ (.* \[([0-9]{4,} kB|[0-9.]+ MB)\])$/  Downloading \1/p'

# run_logged LABEL FOLDER LOG COMMAND…: runs COMMAND with its output in LOG. Names each download as it
# begins, and every ten seconds says how long it has taken and how large FOLDER is by now, so that a
# slow network never looks like a hang. Shows the end of LOG when COMMAND fails.
run_logged() {
  local label=$1 folder=$2 log=$3 began=$SECONDS job waited=0
  shift 3
  mkdir -p "$(dirname "$log")"
  "$@" </dev/null > >(tee "$log" | sed -un -E "$downloads") 2>&1 &
  job=$!
  # shellcheck disable=SC2064  # the job of now is meant
  trap "kill $job 2>/dev/null || true; exit 130" INT TERM
  while kill -0 "$job" 2>/dev/null; do
    sleep 0.2
    waited=$((waited + 1))
    if ((waited % 50 == 0)) && kill -0 "$job" 2>/dev/null; then
      say "  $label: $((SECONDS - began)) s, $(megabytes "$folder") MB so far"
    fi
  done
  trap - INT TERM
  if ! wait "$job"; then
    tail -n 25 "$log" >&2
    fail "$label failed; the whole output is in $log"
  fi
}
