#!/usr/bin/env bash
# All tests of the release build: in one process, with mpirun, and from an install tree. Beside them
# run the wheel for Python in an empty environment, the model of the gate, 12 random jobs, and 3
# worlds whose members come and go: all of these wait most of their time. Installs missing packages
# first. Where PyPI cannot be reached, Python is left out, as the last line says. Before it comes
# what was skipped, and why. With CI=true it fails if more is skipped than may_skip.txt
# allows.
#
# usage: test.sh [--thorough]
# --thorough: the tests that try at random, or all of many cases, try several times as many, and
# those run that take longest. Then scripts/sanitize.sh runs, which else is a command of its own.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
thorough=false
case ${1:-} in
  '') ;;
  --thorough)
    thorough=true
    export SLUICE_TEST_THOROUGH=1 ;;
  *) echo "usage: scripts/test.sh [--thorough]" >&2; exit 2 ;;
esac
at_once=$(($(nproc) * 3))  # many tests wait most of their time
quick=(-LE '^thorough$')
! $thorough || quick=()
# One day, even where tests go on beyond midnight: their ranks have to choose alike.
export SLUICE_TEST_SEED=${SLUICE_TEST_SEED:-$(($(date +%s) / 86400 * 1000))}
: "${CUDAARCHS:=90}"  # quicker than for all that a release has; a build folder keeps its first
export CUDAARCHS
stage() { echo "== test.sh, after $SECONDS s: $*"; }

scripts/packages.sh
stage "build"
scripts/build.sh release
python=passed
scripts/build/pypi.sh || python="left out, as PyPI cannot be reached"
day=$((SLUICE_TEST_SEED / 1000))
beside() {
  [ "$python" != passed ] || scripts/test_python.sh
  scripts/build/model.sh
  scripts/chaos/chaos.py --runs 12 --seed $day
  scripts/chaos/chaos_epochs.py --runs 3 --seed $day
}
stage "tests; beside them Python, the model and random jobs"
set -m  # a group of its own, to be ended as a whole
beside >build/beside.log 2>&1 &
group=$!
set +m
trap 'kill -- "-$group" 2>/dev/null || true' EXIT
code=0
ctest --test-dir build --output-on-failure -j "$at_once" --output-junit tests.xml "${quick[@]}" ||
  code=$?
wait "$group" || code=$?
trap - EXIT
stage "Python, the model and random jobs"
cat build/beside.log
[ "$code" = 0 ] || exit "$code"
! $thorough || scripts/sanitize.sh --thorough
scripts/build/skipped.py build/tests.xml
echo "All tests passed after $SECONDS s: release, with mpirun, from an install tree, model," \
     "random jobs. Python: $python."
