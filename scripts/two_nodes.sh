#!/bin/sh
# Runs a program on two nodes that are namespaces of this machine, and counts the bytes between
# them. two_nodes.py does it, and says more with --help.
exec python3 "$(dirname "$0")/nodes/two_nodes.py" "$@"
