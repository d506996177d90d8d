#!/usr/bin/env bash
# The demo: what a budget saves and costs. Matrices cut by rows on 16 ranks of this machine become
# matrices cut by columns, in messages as between nodes, without and with a budget, every element
# verified. Then the plan of DeepSeek-V3 in full size from 16 to 16 ranks, simulated.
#
# usage: run.sh    installs missing packages, builds, and runs about a minute
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

. scripts/build/usage.sh
show_usage "scripts/${0##*/}" "$@"

scripts/packages.sh
scripts/build.sh release sluice-bench sluice-sim

echo
scripts/mpirun.sh -np 16 --oversubscribe build/bin/sluice-bench reshard \
  --shape 4096,4096 --tensors 48 --dtype bf16 --src '16:S(0)' --dst '16:S(1)' --transport mpi \
  --compare-budgets 0,8 -n 3 -w 1 --json build/demo.json
echo
build/bin/sluice-sim peak \
  --model deepseek-v3 --system deepseek-v3-pp2ep8-tp4dp4 --budget-buckets 0,8
