#!/usr/bin/env bash
# Proves on a machine with a GPU what the fakes cannot: tests, rates, and transfers between
# processes. Ends with a table of what was proven, what was not, and why.
#
# usage: gpu_check.sh [--limit SECONDS] [--only REGEX] [BUILD [OUT]]
#        gpu_check.sh --programs: prints what BUILD has to have in bin/
#   --limit  end in so many seconds: what there is no time for is in the table [560]
#   --only   the steps whose names match, beside what OUT has of earlier calls
#   BUILD    a folder with bin/, built with CUDA, NCCL and tests [build; in a bundle, the bundle]
#   OUT      where to write [build/results/gpus]
#
# Everything is written as it comes: OUT/gpu-NAME/ has a log of each step, its JSON and steps.tsv;
# OUT/gpu-NAME.json and .md are made from them at the end, also when a signal ends the script. RUN,
# in the environment, is put before each program: a wrapper that finds libraries. NCCL_2_30, a
# folder with libnccl.so.2 of 2.30.3 or later, is used where two ranks of NCCL share a GPU. Needs no
# network. 0: all steps passed, or were skipped; 1: one failed; 2: wrong use; 77: there is no GPU.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
programs=(cuda_device_gpu_test nccl_transport_gpu_test cuda_transports_gpu_mpi
          cuda_streams_gpu_mpi gpu_bench sluice-bench)
began=$SECONDS limit=560 only=.
while [ $# -gt 0 ]; do
  case $1 in
    --limit) limit=$2; shift 2 ;;
    --only) only=$2; shift 2 ;;
    --programs) printf '%s\n' "${programs[@]}"; exit 0 ;;
    -*) sed -n '2,/^set/p' "$0" | sed '$d; s/^# \{0,1\}//'; exit 2 ;;
    *) break ;;
  esac
done
build=${1:-} out=${2:-}
if [ -z "$build" ]; then
  build=build
  if [ -x run ] && [ -d bin ]; then build=.; fi
fi
if [ -x "$build/run" ]; then  # a bundle
  RUN=${RUN:-$build/run} NCCL_2_30=${NCCL_2_30:-$build/nccl}
fi
bin=$build/bin out=${out:-build/results/gpus}
read -ra run <<<"${RUN:-}"
if [ "$(id -u)" -eq 0 ]; then
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
fi
# Logs are read below. PMIx need not say that it compresses nothing.
export GTEST_COLOR=no PMIX_MCA_pcompress_base_silence_warning=1 \
  PMIX_MCA_mca_base_component_show_load_errors=0

if ! command -v nvidia-smi >/dev/null || ! gpus=$(nvidia-smi --query-gpu=name,driver_version \
    --format=csv,noheader 2>/dev/null) || [ -z "$gpus" ]; then
  echo "There is no GPU here (nvidia-smi finds none): nothing was checked."
  exit 77
fi
gpu=$(head -1 <<<"$gpus")
count=$(wc -l <<<"$gpus")
for program in "${programs[@]}"; do
  if [ ! -x "$bin/$program" ]; then
    echo "$bin/$program is missing: build with CUDA, NCCL and tests (scripts/build.sh release)" >&2
    exit 1
  fi
done

name=$(sed 's/,.*//; s/[^A-Za-z0-9]\+/-/g; s/^-\|-$//g' <<<"$gpu" | tr '[:upper:]' '[:lower:]')
work=$out/gpu-$name
scratch=$(mktemp -d)
mkdir -p "$work" && : >>"$work/steps.tsv" || exit 1
echo "GPU: $gpu ($count)"

table() {
  trap - EXIT
  rm -rf "$scratch"
  python3 scripts/gpu/gpu_table.py --gpu "$gpu" --gpus "$count" --results "$work" --out "$out"
}
trap 'code=$?; table; exit "$code"' EXIT
trap 'exit 143' TERM INT HUP

# A failure of an earlier call counts until its step passes.
note() { printf '%s\t%s\t%s\n' "$1" "$2" "$3" >>"$work/steps.tsv"; }

# tests WHICH LOG: how many tests of a program have PASSED, or were SKIPPED.
tests() {
  local of
  of=$(sed -n "s/^\[  $1 *\] \([0-9]\{1,\}\) tests\{0,1\}[.,].*/\1/p" "$2" | head -1)
  echo "${of:-0}"
}
# Why the first one was.
reason() {
  local line
  line=$(grep -m1 -A1 ': Skipped' "$1" | sed -n 2p | tr -d '\r')
  echo "${line:-$(grep -m1 -iE 'skipped|no GPU' "$1")}"
}

# step NAME SECONDS PROVES COMMAND...: runs it, and notes the outcome. A program of tests that runs
# none has failed. One that skips some ends with 77, like one that skips all.
step() {
  local name=$1 most=$2 proves=$3 code=0 left log=$work/$1.log outcome
  shift 3
  [[ $name =~ $only ]] || return 0
  left=$((limit - (SECONDS - began)))
  if [ "$left" -lt 5 ]; then
    note "$name" "$proves" "not run: no time left (--only $name)"
    return 0
  fi
  [ "$left" -ge "$most" ] || most=$left
  echo "--- $name"
  note "$name" "$proves" "not ended"
  timeout -k 5 "$most" "${run[@]}" "$@" >"$log" 2>&1 || code=$?
  tail -n 15 "$log"
  # There is a GPU here, so a benchmark that says it cannot run has failed.
  case "$code $*" in 77*/sluice-bench\ *) code='77 of sluice-bench' ;; esac
  if [ "$code" = 0 ] && grep -q '^\[=*\] Running 0 tests' "$log"; then code=none; fi
  case $code in
    0) outcome=passed ;;
    77) if [ "$(tests PASSED "$log")" -gt 0 ]; then
          outcome="passed, $(tests SKIPPED "$log") skipped: $(reason "$log")"
        else
          outcome="skipped: $(reason "$log")"
        fi ;;
    124 | 137) outcome="failed: not done after $most s" ;;
    none) outcome='failed: no test ran' ;;
    *) outcome="failed: exit code $code" ;;
  esac
  note "$name" "$proves" "$outcome"
}
# skip NAME PROVES WHY
skip() { if [[ $1 =~ $only ]]; then note "$1" "$2" "not run: $3"; fi; }

# reshard NAME RANKS SECONDS PROVES OPTION...: a redistribution.
reshard() {
  local name=$1 ranks=$2 most=$3 proves=$4
  shift 4
  step "$name" "$most" "$proves" mpirun -np "$ranks" --oversubscribe --bind-to none \
    "$bin/sluice-bench" reshard --dtype f32 "$@" --json "$work/$name.json"
}

# Version of the NCCL that programs load, as a number; empty where there is none.
nccl_version() {
  "${run[@]}" python3 -c 'import ctypes
nccl, version = ctypes.CDLL("libnccl.so.2"), ctypes.c_int()
nccl.ncclGetVersion(ctypes.byref(version))
print(version.value)' 2>/dev/null
}

two=(--src-mesh 2 --src-ranks 0-1 --src-placements 'S(0)'
     --dst-mesh 2 --dst-ranks 0-1 --dst-placements 'S(1)')
one=(--src-mesh 1 --src-ranks 0 --src-placements R
     --dst-mesh 1 --dst-ranks 0 --dst-placements R)
away=(--src-mesh 1 --src-ranks 0 --src-placements R
      --dst-mesh 1 --dst-ranks 1 --dst-placements R)
large=(--shape 16384,8192 -n 7)
small=(--shape 8,8 --tensors 10000 -n 5)
cuda=(--device cuda)

# What tells most comes first: without the device's tests nothing else means anything.
step device 60 "kernels load and give the CPU's bits; copies, fences, spans, errors" \
  "$bin/cuda_device_gpu_test"
if [ "$count" -ge 2 ]; then
  which='CudaIpc*' where='on one GPU, and on one each'
else
  which='CudaIpc*/OneGpu' where='on one GPU'
fi
step ipc 120 "CUDA IPC's contract between two processes $where" \
  mpirun -np 2 --oversubscribe "$bin/cuda_transports_gpu_mpi" --gtest_filter="$which"
step nccl 60 "NCCL's contract of groups, one rank" "$bin/nccl_transport_gpu_test"
reshard thread 2 40 "a progress thread, which has no context of its own, exports memory" \
  "${cuda[@]}" --transport cuda_ipc --progress-thread --timeout-s 10 --shape 4096,4096 -n 3 \
  "${away[@]}"
reshard local 1 30 "sessions on device memory, within a rank" "${cuda[@]}" "${large[@]}" \
  "${one[@]}"
reshard cuda_ipc 2 40 "sessions over CUDA IPC" "${cuda[@]}" "${large[@]}" "${two[@]}" \
  --transport cuda_ipc
reshard mpi 2 40 "device memory through pinned staging and MPI" "${cuda[@]}" "${large[@]}" \
  "${two[@]}"
reshard mixed 2 40 "device memory to host memory" --src-device cuda --dst-device cpu "${large[@]}" \
  "${two[@]}"

# streams NAME SECONDS PROVES FILTER: tests of the caller's streams, captures and memory.
streams() {
  step "$1" "$2" "$3" mpirun -np 2 --oversubscribe --bind-to none "$bin/cuda_streams_gpu_mpi" \
    multiple --gtest_filter="$4"
}
streams streams 120 "events, late destinations and runs in the caller's stream" \
  '*CudaStream*Mpi*-*Nccl*'
streams captures 60 'captures of graphs beside sessions' '*CudaCaptures*-*Nccl*'
streams memory 60 'memory of pools and managed memory over CUDA IPC' '*CudaMemory*'

# Two ranks of NCCL: on a GPU each, or on one, where the version takes two.
both=(--transport nccl --timeout-s 60 --max-ctas 8)
between="NCCL sends between two ranks"
registered="staging of NCCL's own, registered with it"
if [ "$count" -ge 2 ]; then
  nccl=("${cuda[@]}" "${both[@]}" --shape 4096,4096 -n 3 "${two[@]}")
  reshard nccl_two 2 90 "$between" "${nccl[@]}"
  reshard nccl_registered 2 90 "$registered" "${nccl[@]}" --register-staging
  step nccl_two_contract 120 "NCCL's contract of groups between two ranks" \
    mpirun -np 2 --oversubscribe "$bin/cuda_transports_gpu_mpi" --gtest_filter='Nccl*'
  streams nccl_streams 150 "events and runs in the caller's stream over NCCL" '*CudaStream*Nccl*'
  streams nccl_captures 60 'captures of graphs beside sessions over NCCL' '*CudaCaptures*Nccl*'
else
  if [ -n "${NCCL_2_30:-}" ] && [ -e "$NCCL_2_30/libnccl.so.2" ]; then
    run=("${run[@]}" env "LD_PRELOAD=$(realpath "$NCCL_2_30/libnccl.so.2")")
  fi
  version=$(nccl_version)
  if [ "${version:-0}" -ge 23003 ]; then
    export NCCL_MULTI_RANK_GPU_ENABLE=1 NCCL_MAX_CTAS=8 SLUICE_TEST_RANKS_PER_GPU=2
    nccl=("${cuda[@]}" "${both[@]}" --shape 1024,1024 -n 3 "${two[@]}")
    reshard nccl_two 2 90 "$between on one GPU (NCCL $version)" "${nccl[@]}"
    reshard nccl_registered 2 90 "$registered (one GPU)" "${nccl[@]}" --register-staging
    step nccl_two_contract 120 "NCCL's contract of groups between two ranks on one GPU" \
      mpirun -np 2 --oversubscribe "$bin/cuda_transports_gpu_mpi" --gtest_filter='Nccl*'
    streams nccl_streams 150 "events and runs in the caller's stream over NCCL (one GPU)" \
      '*CudaStream*Nccl*'
    streams nccl_captures 60 'captures of graphs beside sessions over NCCL (one GPU)' \
      '*CudaCaptures*Nccl*'
    unset NCCL_MULTI_RANK_GPU_ENABLE NCCL_MAX_CTAS SLUICE_TEST_RANKS_PER_GPU
  else
    why="one GPU, and NCCL ${version:-that cannot be loaded} (2.30.3 and later take two ranks)"
    skip nccl_two "$between" "$why"
    skip nccl_registered "$registered" "$why"
    skip nccl_two_contract "NCCL's contract of groups between two ranks" "$why"
    skip nccl_streams "events and runs in the caller's stream over NCCL" "$why"
    skip nccl_captures 'captures of graphs beside sessions over NCCL' "$why"
  fi
  read -ra run <<<"${RUN:-}"
fi

step rates 90 "rates of the device's copies beside others'" \
  "$bin/gpu_bench" --bytes 268435456 --json "$work/device.json"
reshard tiny_local 1 30 "10,000 small tensors within a rank" "${cuda[@]}" "${small[@]}" "${one[@]}"
reshard tiny_ipc 2 30 "10,000 small tensors over CUDA IPC" "${cuda[@]}" "${small[@]}" \
  "${away[@]}" --transport cuda_ipc
step shards 20 "shards for the next step" "$bin/sluice-bench" shards --make raw \
  --dir "$scratch/shards" --items 256 --item-bytes 4M
step stream 40 "shards from storage to device memory" "$bin/sluice-bench" stream \
  --source "file:$scratch/shards" --device cuda --consume-us 500 \
  --trace "$work/stream-trace.txt" --json "$work/stream.json"
if command -v compute-sanitizer >/dev/null; then
  # Tests provoke errors of calls, which the checker would count.
  step checker 100 "no access out of bounds or misaligned in the device's tests" compute-sanitizer \
    --report-api-errors no --error-exitcode 9 "$bin/cuda_device_gpu_test" \
    --gtest_filter='CudaDeviceTest.*-*Spans*'
else
  skip checker "no access out of bounds or misaligned in the device's tests" \
    "compute-sanitizer is not installed"
fi

table
if python3 scripts/gpu/gpu_table.py --results "$work" --failed; then exit 0; else exit 1; fi
