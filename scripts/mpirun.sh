#!/bin/sh
# mpirun as the present user, of the MPI that $MPIRUN or else $PATH names; takes Open MPI's options.
#
# usage: mpirun.sh [--oversubscribe] [--enable-recovery] [OPTION...] -np N PROGRAM [ARGUMENT...]
#   --oversubscribe     there may be more ranks than cores, as MPICH always allows
#   --enable-recovery   a rank that dies leaves the others alone
# Open MPI refuses to run as root, as in a container, unless told twice.
set -eu
mpirun=${MPIRUN:-mpirun}
if [ "$(id -u)" -eq 0 ]; then
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
fi
# Open MPI 5 has another name for where its own files are.
if [ -n "${OMPI_MCA_orte_tmpdir_base:-}" ]; then
  export PRTE_MCA_prte_tmpdir_base="$OMPI_MCA_orte_tmpdir_base"
fi
# Otherwise Open MPI 5 ends a rank whose peer has closed a connection.
case " $* " in *' --enable-recovery '*) export OMPI_MCA_mpi_ft_enable=1 ;; esac
case $(readlink -f "$(command -v "$mpirun" || true)") in
  *hydra*)  # MPICH
    for argument in "$@"; do
      shift
      case $argument in
        --oversubscribe) ;;
        --enable-recovery) set -- "$@" -disable-auto-cleanup ;;
        *) set -- "$@" "$argument" ;;
      esac
    done ;;
esac
exec "$mpirun" "$@"
