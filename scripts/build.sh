#!/usr/bin/env bash
# Configures and builds one preset of CMakePresets.json.
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

if ! log=$(cmake --preset "$preset" 2>&1); then
  printf '%s\n' "$log" >&2
  exit 1
fi
targets=()
[ $# -eq 0 ] || targets=(--target "$@")
cmake --build "$dir" --parallel "$(nproc)" "${targets[@]}"
