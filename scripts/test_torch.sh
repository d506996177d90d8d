#!/usr/bin/env bash
# Tests the Python package with PyTorch: builds and installs the wheel, and runs what needs PyTorch.
#
# usage: test_torch.sh [PYTEST ARGUMENT...]    such as -k dtensor
#   SLUICE_TORCH_VENV   the environment, made if it is not there, and kept [build/venv-torch]
#   SLUICE_WHEEL        a wheel that is there already [built by scripts/build/wheel.sh]
#   SLUICE_PACKAGE      a folder with a built package sluice, in place of a wheel: python/ with the
#                       module of a CMake build of it
#   SLUICE_TORCH=full   PyTorch with all its CUDA libraries: 3 GB to fetch, 5 GB on disk; without
#                       it and without an NVIDIA driver, half a GB and 1.5 GB (torch_env.py)
#   Runs python/tests/torch with pytest, and the examples of examples/python that PyTorch's launcher
#   starts. Ends with 1 if PyTorch cannot be installed, or if a test fails.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

. scripts/build/usage.sh
show_usage "scripts/${0##*/}" "$@"

scripts/packages.sh python3-venv binutils
venv=$(realpath -m "${SLUICE_TORCH_VENV:-build/venv-torch}")
python3 scripts/torch_env.py "$venv" pytest pytest-xdist execnet \
  iniconfig packaging pluggy pygments
export PATH=$venv/bin:$PATH
# Only tests of DCP see these (test_dcp.py).
export SLUICE_TEST_BESIDE=$venv/beside
[ -d "$SLUICE_TEST_BESIDE" ] || python -m pip install --quiet --disable-pip-version-check \
  --no-cache-dir --target "$SLUICE_TEST_BESIDE" numpy safetensors
at_once=$(nproc)  # which goes by OMP_NUM_THREADS, too
# Ranks share few cores: threads of PyTorch's would only wait for each other.
export OMP_NUM_THREADS=1

pip=(python -m pip install --quiet --disable-pip-version-check --no-cache-dir)
if [ -n "${SLUICE_PACKAGE:-}" ]; then
  "${pip[@]}" nanobind-backend
  PYTHONPATH=$(realpath "$SLUICE_PACKAGE")
  export PYTHONPATH
else
  wheel=${SLUICE_WHEEL:-}
  if [ -z "$wheel" ]; then
    scripts/build/wheel.sh
    wheel=$(find build/wheel -name 'sluice_mesh-*.whl' -printf '%T@ %p\n' | sort -n | tail -n 1)
    wheel=${wheel#* }
    [ -n "$wheel" ] || { echo "test_torch.sh: scripts/build/wheel.sh left no wheel" >&2; exit 1; }
  fi
  "${pip[@]}" --force-reinstall --no-deps "$wheel"
  "${pip[@]}" "$wheel"  # and what it needs; PyTorch is no part of that
  # The tests see the wheel, and not the sources beside them.
  unset PYTHONPATH
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$PWD
cd "$work"

python "$root/scripts/nodes/job_limit.py" 3600 python -m pytest -q \
  -p no:cacheprovider -n "$at_once" --dist worksteal --junitxml "$root/build/torch.xml" \
  --rootdir "$root/python/tests" "$root/python/tests/torch" "$@"

# Each says on its own what went wrong; a rank that hangs is ended.
launch() {
  local processes=$1 example=$2
  shift 2
  echo "== $example on $processes processes"
  python "$root/scripts/nodes/job_limit.py" 900 python -m torch.distributed.run --standalone \
    --nnodes=1 --nproc-per-node="$processes" "$root/examples/python/$example" "$@"
}
for example in redistribute checkpoint; do
  launch 4 "$example.py"
done
launch 2 stream.py

# Two jobs that are started apart, and meet.
launch 4 trainer.py &
trainer=$!
server=0
launch 2 server.py || server=$?
wait "$trainer"
[ "$server" = 0 ] || exit "$server"
echo "All tests with PyTorch passed."
