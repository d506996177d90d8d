#!/usr/bin/env bash
# Ends with 0 if packages can be had from PyPI, or wherever pip is told to look. Otherwise it says
# why not, and ends with 1. Python's tests take packages that Debian does not have.
# usage: pypi.sh
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
if said=$("$work/venv/bin/python" -m pip --disable-pip-version-check --timeout 20 --retries 2 \
            download --quiet --no-deps --no-cache-dir --dest "$work" iniconfig 2>&1); then
  exit 0
fi
echo "PyPI cannot be reached: $(tail -n 1 <<<"$said")" >&2
exit 1
