#!/usr/bin/env bash
# Builds the reference of the Python package as HTML, from its docstrings.
#
# usage: api.sh [--out DIR]
#   --out DIR         where index.html and others go [build/api]
#   SLUICE_API_VENV   the environment with pdoc, made if it is not there, and kept [build/venv-api]
#   SLUICE_WHEEL      a wheel that is there already [that of build/wheel, or scripts/build/wheel.sh]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

. scripts/build/usage.sh
show_usage "scripts/build/${0##*/}" "$@"

out=build/api
if [ "${1:-}" = --out ]; then
  out=${2:?--out takes a folder}
fi
venv=$(realpath -m "${SLUICE_API_VENV:-build/venv-api}")
wheel=${SLUICE_WHEEL:-$(find build/wheel -name 'sluice_mesh-*.whl' 2>/dev/null || true)}
if [ -z "$wheel" ]; then
  scripts/build/wheel.sh
  wheel=$(find build/wheel -name 'sluice_mesh-*.whl')
fi
pip=("$venv/bin/python" -m pip --disable-pip-version-check --quiet install)
if [ ! -e "$venv/bin/pdoc" ]; then
  python3 -m venv --clear "$venv"
  "${pip[@]}" typing_extensions pdoc
fi
"${pip[@]}" --force-reinstall --no-deps "$wheel"
"${pip[@]}" "$wheel"  # and what it needs
"$venv/bin/python" - "$out" <<'PYTHON'
"""Writes the pages of the names that `sluice` shows, which it imports when they are asked for."""
import sys
from pathlib import Path

import pdoc
import sluice

for name in sluice.__all__:
    getattr(sluice, name)
pdoc.render.configure(docformat="markdown", show_source=False, search=True)
pdoc.pdoc("sluice", output_directory=Path(sys.argv[1]))
PYTHON
echo "$out/index.html"
