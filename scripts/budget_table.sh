#!/usr/bin/env bash
# What a budget holds down and what it costs, in each preset: scripts/budget_table.py says how, and
# what it writes.
#
# usage: budget_table.sh [--cases LIST] [--models LIST] [--rounds 5] [--minutes M] [--json
# FILE] ...
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
PYTHONDONTWRITEBYTECODE=1 exec python3 "$scripts/budget_table.py" \
  ${SLUICE_BENCH:+--sluice-bench "$SLUICE_BENCH"} "$@"
