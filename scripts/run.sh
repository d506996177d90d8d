#!/usr/bin/env bash
# The demo: Llama-3-8B's weights from an FSDP trainer to TP x DP inference on 8 ranks of this
# machine, without and with a budget, every element verified. Installs missing packages first.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

scripts/packages.sh
scripts/build.sh release sluice-bench

# All layers with dimensions divided by 4 fit a laptop. Four buckets per channel, so that a rank's
# four peers could fill twice a budget of 8.
echo
scripts/mpirun.sh -np 8 --oversubscribe build/bin/sluice-bench reshard \
  --model llama-3-8b --system llama-3-8b-fsdp4-tp2dp2 \
  --scale 4 --bucket-bytes 8M --max-in-flight 4 --compare-budgets 0,8 -n 5 -w 1 \
  --json build/llama-3-8b.json
