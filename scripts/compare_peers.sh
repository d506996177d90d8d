#!/usr/bin/env bash
# Compares Sluice with other ways to do the same redistribution on this machine, in turns: Open MPI,
# MPICH and Gloo by hand (bench/peers), gather and broadcast, and plain memcpy.
#
# usage: compare_peers.sh [OPTION...]
#   --rounds N          rounds in which every way has its turn [11]
#   --iters N           timed iterations of a turn, after one to warm up; their median counts [3]
#   --transports LIST   of Sluice [those of mpi and direct that sluice-bench offers]
#   --cases PATTERN     only cases whose names match it, as the shell's patterns do [*]
#   --ways PATTERN      only ways whose names match it; Sluice is always there [*]
#   --list              prints the names of the cases and ways, and measures nothing
#   --json FILE         writes the table, with the times of all rounds
#   Installs what is missing. Every element is checked after every iteration; ends with 1 if one is
#   wrong, or a way fails. All cases take about two hours; times depend on what else runs here.
#
# example: compare_peers.sh --cases '2-ranks-*' --json peers.json
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

. scripts/usage.sh
show_usage "scripts/${0##*/}" "$@"

scripts/packages.sh mpich libmpich-dev libgloo-dev
[ -n "${SLUICE_BENCH:-}" ] || scripts/build.sh release sluice-bench >/dev/null

# The compiler wrappers of both MPIs have names of their own, so both can be installed.
programs=build/peers
mkdir -p "$programs"
peer() {
  local name=$1 compiler=$2 source=bench/peers/$3
  shift 3
  "$compiler" -std=c++20 -O3 -w -Ibench -o "$programs/$name" "$source" \
    bench/peers/redistribution.cc bench/peers/rounds.cc "$@"
}
peer openmpi mpicxx.openmpi mpi_peer.cc
peer mpich mpicxx.mpich mpi_peer.cc
peer gloo "${CXX:-c++}" gloo_peer.cc -lgloo -pthread
peer memcpy "${CXX:-c++}" memcpy_peer.cc -pthread

exec python3 scripts/compare_peers.py --programs "$programs" \
  --sluice-bench "${SLUICE_BENCH:-build/bin/sluice-bench}" "$@"
