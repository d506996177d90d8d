#!/usr/bin/env bash
# Runs what docs/large-meshes.md reports.
#
# usage: large_meshes.sh [RESULTS-FOLDER]    default: build/results/large-meshes
#   About an hour and a half on one core, and 14 GB. The comparison with SimGrid is
#   check_simulation.py. report.py shows files of results as tables and pictures.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
results=${1:-build/results/large-meshes}
mkdir -p "$results"
scripts/build.sh release sluice-sim >/dev/null

scale() {
  local name=$1
  shift
  build/bin/sluice-sim scale "$@" --costs --json "$results/$name.json"
}
peak() {
  local name=$1 model=$2 system=$3
  shift 3
  build/bin/sluice-sim peak --model "$model" --system "$system" --network h100 --costs \
    --json "$results/$name.json" "$@"
}

scale all-to-all --family all-to-all --ranks 16:512:2 --budget-buckets 0,8
scale small-buckets --family all-to-all --ranks 16:512:2 --budget-buckets 0,8 --pair-bytes 1M
# Without a budget 65,536 engines take more than 8 GB.
scale peers --family peers --peers 256 --ranks 1024:16384:4 --budget-buckets 0,8
scale peers-65536 --family peers --peers 256 --ranks 65536 --budget-buckets 8
scale fsdp-tp --family fsdp-tp --network h100 --ranks 16:1024:4 --budget-buckets 0,4,8,16
scale pp-ep-tp-dp --family pp-ep-tp-dp --network h100 --ranks 16:1024:4 --budget-buckets 0,4,8,16
peak deepseek-v3 deepseek-v3 deepseek-v3-pp8ep16-tp8dp16 --budget-buckets 0,2,4,8,16,32,64
peak qwen3-235b qwen3-235b-a22b qwen3-235b-a22b-64-64 --budget-buckets 0,2,4,8,16,32,64
peak llama-3-70b llama-3-70b llama-3-70b-fsdp512-tp8dp8 --budget-buckets 0,2,4,8,16,32,64
# Without a budget its engines take 14 GB.
peak 65536-ranks llama-3-70b llama-3-70b-fsdp64tp8dp64-tp8dp4096 --layers 1 --budget-buckets 8
peak 65536-ranks-free llama-3-70b llama-3-70b-fsdp64tp8dp64-tp8dp4096 --layers 1 --budget-buckets 0
# The systems of compare.py budgets --models, with more and more data-parallel ranks: 32 to
# 65,536 in all. Buckets of DeepSeek-V3 have many members: more than 512 ranks would take hours.
repeated() {
  local name=$1 model=$2 system=$3 layers=$4 replicas=$5
  peak "replicas-$name" "$model" "$system" --layers "$layers" --replicas "$replicas" \
    --budget-buckets 0,8
  peak "replicas-$name-apart" "$model" "$system" --layers "$layers" --replicas "$replicas" \
    --budget-buckets 0,8 --no-coalesce
}
repeated qwen3-235b qwen3-235b-a22b qwen3-235b-a22b-tp2pp2ep4-tp8dp2 2 1,16,128,2048
repeated llama-3-8b llama-3-8b llama-3-8b-fsdp16-tp8dp2 1 1,16,128,2048
repeated deepseek-v3 deepseek-v3 deepseek-v3-pp2ep8-tp4dp4 4 1,16
