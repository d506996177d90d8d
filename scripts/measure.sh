#!/usr/bin/env bash
# Measures what docs/performance.md and the README show, and writes build/results/*.json.
#
# usage: measure.sh [--minutes M] [--only NAME[,NAME...]] [--quick] [--bin FOLDER] [--out FOLDER]
#   --minutes M   about how long to take [90, on 2 quiet cores]: there are more rounds, or fewer
#   --only NAME   best-mpi, serial, budget-24, budget-models, sizes, squares, tiny, latency,
#                 checkpoints, two-nodes, copies, planning, waves, slots, hand-over, mmap, stages,
#                 generate, connect, wires, worlds or members
#   --quick       one round of small sizes, to see that it works: no results to show anybody
#   --bin FOLDER  where the programs are [build/bin, built first]
#   --out FOLDER  where the files go [build/results]
#   Each file begins with machine, date, commit, command and rounds. A part that this machine does
#   not allow (two-nodes, wires and worlds take root) is left out. A part that fails makes this end
#   with 1.
#   Afterwards: scripts/report.py FILE... shows tables, and draws pictures.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
for argument in "$@"; do
  case $argument in
    -h | --help)
      sed -n '/^# usage/,/^set /{/^set /d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}"
      exit 0
      ;;
    --bin | --bin=*) built=1 ;;
  esac
done
[ -n "${built:-}" ] ||
  scripts/build.sh release sluice-bench sluice-sim plan_bench copy_bench hand_over_bench \
    connect_bench >/dev/null
exec python3 bench/figures/measure.py "$@"
