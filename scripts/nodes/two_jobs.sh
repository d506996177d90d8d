#!/bin/sh
# Two jobs that are started apart meet: trainers first, servers later, as from another shell.
# two_jobs.py does it, and says more with --help.
exec python3 "$(dirname "$0")/two_jobs.py" "$@"
