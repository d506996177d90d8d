#!/bin/sh
# Two jobs on this machine, started apart, meet: trainers first, servers a second later.
#
# usage: two_jobs.sh [TRAINERS [SERVERS [FOLDER_OF_THE_PROGRAMS]]]
set -eu
here=$(cd "$(dirname "$0")" && pwd)
trainers=${1:-2}
servers=${2:-3}
bin=${3:-$here/../build/bin}

# Trainer 0 serves the store, at a port that is free now.
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0))
print(s.getsockname()[1])')
SLUICE_TOKEN=$(python3 -c 'import secrets; print(secrets.token_hex())')
SLUICE_WORLD=tcp://127.0.0.1:$port
SLUICE_ROLES=trainer:$trainers,server:$servers
export SLUICE_TOKEN SLUICE_WORLD SLUICE_ROLES

SLUICE_ROLE=trainer "$here/spawn.sh" -n "$trainers" "$bin/two_jobs_trainer" &
trainer=$!
sleep 1
code=0
SLUICE_ROLE=server "$here/spawn.sh" -n "$servers" "$bin/two_jobs_server" || code=$?
if [ "$code" -ne 0 ]; then kill "$trainer" 2>/dev/null || :; fi
wait "$trainer" || code=$?
exit "$code"
