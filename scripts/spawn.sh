#!/bin/sh
# Starts N processes of a program on this machine, as the ranks of a world, without mpirun.
# spawn.py does it, and says how with --help.
#
# usage: spawn.sh -n N [-l] [-g SECONDS] PROGRAM [ARGUMENT...]
set -eu
exec python3 "$(dirname "$0")/nodes/spawn.py" "$@"
