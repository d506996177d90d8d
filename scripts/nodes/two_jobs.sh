#!/bin/sh
# Two jobs that are started apart meet: trainers first, servers later, as from another shell.
# two_jobs.py does it, and says more with --help.
#
# usage: two_jobs.sh [OPTION...]
#   --trainers N, --servers N    how many [2, 3]
#   --namespaces                 each job on a host of its own: networks, processes and shared
#                                memory apart, and one link; takes root, or ends with 77
#   --rate RATE                  of the link, in each direction, as tc spells it
#   --kill                       the last server is killed
#   --join                       a server comes late; with --kill in the place of the killed one
#   --partition                  the link loses all packets for a while
set -eu
exec python3 "$(dirname "$0")/two_jobs.py" "$@"
