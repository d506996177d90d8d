#!/usr/bin/env bash
# Compares loads of a checkpoint in turns: Sluice, a plain mapping of the files, safetensors, and
# Run:ai's model streamer, with the files in the page cache and without.
#
# usage: compare_checkpoints.sh [OPTION...]
#   --bytes N       of the checkpoint that is made: 64M, 1G [1G]
#   --folder DIR    made there, and removed afterwards; on the storage to measure [build]
#   --ranks N       processes of the second way of Sluice's [2]
#   --rounds N      rounds in which every way has its turn [7]
#   --minutes M     begin no round after so many minutes [no limit]
#   --venv DIR      Python packages go there, and stay [build/venv-checkpoints]
#   --no-torch      leave out what takes torch, which is Run:ai's streamer
#   --json FILE     the results [build/results/checkpoints.json]
#   Packages that are missing are installed by pip. Torch is large: 3 GB to fetch, 5 GB on disk. It
#   is a tenth of that if pip is told where builds for CPUs are (PIP_EXTRA_INDEX_URL).
#   Every way is verified in every round; ends with 1 if an element is wrong. The times are those of
#   a new process that loads once, from the call to the last tensor in memory.
#
# example: compare_checkpoints.sh --bytes 64M --rounds 2 --json /tmp/checkpoints.json
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

. scripts/usage.sh
show_usage "scripts/${0##*/}" "$@"

scripts/packages.sh python3-venv
[ -n "${SLUICE_BENCH:-}" ] || scripts/build.sh release sluice-bench >/dev/null
exec python3 scripts/compare_checkpoints.py \
  --sluice-bench "${SLUICE_BENCH:-build/bin/sluice-bench}" "$@"
