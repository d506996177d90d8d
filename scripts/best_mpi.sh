#!/usr/bin/env bash
# Sluice against the best of what MPI can do, in each preset: scripts/best_mpi.py says how, and
# what it writes.
#
# usage: best_mpi.sh [--cases LIST] [--shape 2048,2048] [--rounds 5] [--minutes M] [--json FILE] ...
#   --help has all options, and the format of the results file.
#   SLUICE_BENCH names the program; otherwise sluice-bench is built first.
set -euo pipefail
scripts=$(dirname "${BASH_SOURCE[0]}")
if [ -z "${SLUICE_BENCH:-}" ]; then
  case " $* " in
    *' --help '* | *' -h '* | *' --sluice-bench'*) ;;
    *) "$scripts/build.sh" release sluice-bench >/dev/null ;;
  esac
fi
PYTHONDONTWRITEBYTECODE=1 exec python3 "$scripts/best_mpi.py" \
  ${SLUICE_BENCH:+--sluice-bench "$SLUICE_BENCH"} "$@"
