#!/usr/bin/env bash
# All tests. Those of the release build run with mpirun and from an install tree, too. Then come the
# wheel for Python in an empty environment, the model of the gate, 40 random jobs, and 10 worlds
# whose members come and go. Tests of code that handles memory run under the address and undefined
# sanitizers, with two ranks under mpirun too, and through Python. Tests with threads run under the
# thread sanitizer. (The presets asan and tsan have all suites of one process.) Installs missing
# packages first. Where PyPI cannot be reached, Python is left out, as the last line says. Before it
# comes what was skipped, and why. With CI=true it fails if more is skipped than
# scripts/may_skip.txt allows.
# usage: test.sh [--thorough]
# --thorough: the tests that try at random, or all of many cases, try several times as many. Those
# with a stand-in for a GPU run under the thread sanitizer, too.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
case ${1:-} in
  '') thread_tests=sluice_thread_tests thread_labels='^threads$' ;;
  --thorough)
    export SLUICE_TEST_THOROUGH=1
    thread_tests=sluice_all_thread_tests thread_labels='threads$' ;;
  *) echo "usage: scripts/test.sh [--thorough]" >&2; exit 2 ;;
esac
at_once=$(($(nproc) + 1))  # many tests wait most of their time
: "${CUDAARCHS:=90}"  # quicker than for all that a release has; a build folder keeps its first
export CUDAARCHS

scripts/packages.sh
scripts/build.sh release
ctest --test-dir build --output-on-failure -j "$at_once" --output-junit tests.xml
python="Python, " left_out=
scripts/pypi.sh || { python=; left_out=" Left out: Python, as PyPI cannot be reached."; }
[ -n "$left_out" ] || scripts/test_python.sh
scripts/model.sh
scripts/chaos.py --runs 40
scripts/chaos_epochs.py --runs 10

# The thread sanitizer of GCC 12 cannot place its shadow memory where the kernel randomises more
# address bits than it knows of.
fixed_addresses=()
if setarch -R true 2>/dev/null; then fixed_addresses=(setarch -R); fi
scripts/build.sh asan sluice_memory_tests
"${fixed_addresses[@]}" ctest --preset asan-memory -j "$at_once" --output-junit tests.xml
[ -n "$left_out" ] || scripts/test_python.sh --asan
scripts/build.sh tsan "$thread_tests"
"${fixed_addresses[@]}" ctest --preset tsan -j "$at_once" -L "$thread_labels" \
  --output-junit tests.xml
scripts/skipped.py build/tests.xml build-asan/tests.xml build-tsan/tests.xml
echo "All tests passed: release, with mpirun, from an install tree, ${python}model, random jobs," \
     "sanitizers.$left_out"
