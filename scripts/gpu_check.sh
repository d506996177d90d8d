#!/usr/bin/env bash
# Runs everything that takes a GPU on one: the device's tests, benchmarks and transfers between
# processes. Writes bench/results/gpu-<device>.json and a table for docs/performance.md.
#
# usage: gpu_check.sh [BUILD] [OUT]
#   BUILD  a folder with bin/, built with CUDA [build; built here if it is missing]
#   OUT    where to write [bench/results]
# RUN, in the environment, is put before each program: a wrapper that finds libraries. Needs no
# network, and at most 8 minutes. Without a GPU it says so and ends with 77.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
build=${1:-build}
out=${2:-bench/results}
read -ra run <<<"${RUN:-}"
if [ "$(id -u)" -eq 0 ]; then
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
fi

if ! command -v nvidia-smi >/dev/null || ! gpu=$(nvidia-smi --query-gpu=name,driver_version \
    --format=csv,noheader 2>/dev/null | head -1) || [ -z "$gpu" ]; then
  echo "There is no GPU here (nvidia-smi finds none): nothing was checked."
  exit 77
fi
echo "GPU: $gpu"
if [ ! -x "$build/bin/sluice-bench" ]; then scripts/build.sh release; fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0
note() { printf '%s\t%s\n' "$1" "$2" >>"$work/steps.tsv"; }

# step NAME SECONDS COMMAND...: runs it, and notes whether it passed.
step() {
  local name=$1 limit=$2 code=0
  shift 2
  echo "--- $name"
  timeout "$limit" "${run[@]}" "$@" >"$work/log" 2>&1 || code=$?
  tail -n 15 "$work/log"
  case $code in
    0) note "$name" passed ;;
    77) note "$name" skipped ;;
    *) note "$name" "failed ($code)"; failures=$((failures + 1)) ;;
  esac
}

bin=$build/bin
for test in "$bin"/*_gpu_test; do
  [ -x "$test" ] && step "$(basename "$test")" 120 "$test"
done
if [ -x "$bin/cuda_transports_gpu_mpi" ]; then
  step "transports between two processes" 120 mpirun -np 2 --oversubscribe \
    "$bin/cuda_transports_gpu_mpi"
fi
if command -v compute-sanitizer >/dev/null && [ -x "$bin/cuda_device_gpu_test" ]; then
  step "memory checker" 120 compute-sanitizer --error-exitcode 1 "$bin/cuda_device_gpu_test" \
    --gtest_filter='*Random*'
else
  note "memory checker" "not installed"
fi
if [ -x "$bin/gpu_bench" ]; then
  step "rates of the device" 120 "$bin/gpu_bench" --json "$work/device.json"
fi

# reshard NAME RANKS OPTION...: a redistribution with both sides on the GPU.
reshard() {
  local name=$1 ranks=$2
  shift 2
  step "$name" 90 mpirun -np "$ranks" --oversubscribe "$bin/sluice-bench" reshard \
    --device cuda --shape 16384,8192 --dtype f32 -n 11 "$@" --json "$work/$name.json"
}
two=(--src-mesh 2 --src-ranks 0-1 --src-placements 'S(0)'
     --dst-mesh 2 --dst-ranks 0-1 --dst-placements 'S(1)')
one=(--src-mesh 1 --src-ranks 0 --src-placements R
     --dst-mesh 1 --dst-ranks 0 --dst-placements R)
reshard local 1 "${one[@]}" --shape 16384,16384
reshard cuda_ipc 2 "${two[@]}" --transport cuda_ipc
reshard mpi 2 "${two[@]}"
reshard mixed 2 "${two[@]}" --dst-device cpu
"${run[@]}" "$bin/sluice-bench" shards --make raw --dir "$work/shards" --items 512 \
  --item-bytes 4M >/dev/null
step stream 90 "$bin/sluice-bench" stream --source "file:$work/shards" --device cuda \
  --consume-us 500 --trace "$work/stream-trace.txt" --json "$work/stream.json"
# One GPU takes one rank of NCCL.
reshard nccl 1 "${one[@]}" --transport nccl

python3 scripts/gpu_table.py --gpu "$gpu" --steps "$work/steps.tsv" --results "$work" --out "$out"
[ "$failures" -eq 0 ] || { echo "$failures steps failed." >&2; exit 1; }
