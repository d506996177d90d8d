#!/usr/bin/env bash
# Configures and builds one preset of CMakePresets.json. Of these, mpich takes MPICH instead of Open
# MPI, and installs it first; `ctest --test-dir build-mpich` runs its tests.
# With CI=true a warning is an error, whatever the preset says.
# usage: build.sh PRESET [TARGET...]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

preset=$1
shift
case $preset in
  release) dir=build ;;
  *) dir=build-$preset ;;
esac
if [ -e "$dir" ] && [ ! -w "$dir" ]; then
  echo "$PWD/$dir belongs to another user. Remove it, or run this as that user." >&2
  exit 1
fi

if [ "$preset" = mpich ]; then scripts/packages.sh mpich libmpich-dev; fi
options=()
[ "${CI:-}" != true ] || options=(-D SLUICE_WERROR=ON)
if ! log=$(cmake --preset "$preset" "${options[@]}" 2>&1); then
  printf '%s\n' "$log" >&2
  exit 1
fi
targets=()
[ $# -eq 0 ] || targets=(--target "$@")
cmake --build "$dir" --parallel "$(nproc)" "${targets[@]}"
