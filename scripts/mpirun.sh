#!/bin/sh
# mpirun as the present user. Open MPI refuses to run as root, as in a container, unless told twice.
set -eu
if [ "$(id -u)" -eq 0 ]; then
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
fi
exec "${MPIRUN:-mpirun}" "$@"
