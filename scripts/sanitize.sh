#!/usr/bin/env bash
# Tests under sanitizers. Those of code that handles memory run under the address and undefined
# sanitizers, with two ranks under mpirun too, and through Python. Those with threads run under the
# thread sanitizer. (The presets asan and tsan have all suites of one process.) Lists at the end
# what was skipped, and why.
#
# usage: sanitize.sh [--thorough] [asan|tsan]    one of the two [both]
# --thorough: the tests that try at random try several times as many. Those with a stand-in for a
# GPU run under the thread sanitizer, too.
# Python's need the tools of scripts/build/wheel.sh, and are left out where it has not run.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

. scripts/build/usage.sh
show_usage "scripts/${0##*/}" "$@"

thread_tests=sluice_thread_tests thread_labels='^threads$'
if [ "${1:-}" = --thorough ]; then
  export SLUICE_TEST_THOROUGH=1
  thread_tests=sluice_all_thread_tests thread_labels='threads$'
  shift
fi
case ${1:-} in
  '') wanted="asan tsan" ;;
  asan|tsan) wanted=$1 ;;
  *) echo "usage: scripts/sanitize.sh [--thorough] [asan|tsan]" >&2; exit 2 ;;
esac
at_once=$(($(nproc) + 1))  # many tests wait most of their time
: "${CUDAARCHS:=90}"
export CUDAARCHS
stage() { echo "== sanitize.sh, after $SECONDS s: $*"; }

# The thread sanitizer of GCC 12 cannot place its shadow memory where the kernel randomises more
# address bits than it knows of.
fixed_addresses=()
if setarch -R true 2>/dev/null; then fixed_addresses=(setarch -R); fi
results=()

scripts/packages.sh
if [[ " $wanted " == *" asan "* ]]; then
  stage "address and undefined sanitizers, build"
  scripts/build.sh asan sluice_memory_tests
  stage "address and undefined sanitizers, tests"
  "${fixed_addresses[@]}" ctest --preset asan-memory -j "$at_once" --output-junit tests.xml
  results+=(build-asan/tests.xml)
  if [ -x "${SLUICE_WHEEL_VENV:-build/venv-wheel}/bin/auditwheel" ]; then
    stage "address and undefined sanitizers, Python"
    scripts/test_python.sh --asan
  else
    echo "Left out: Python, as scripts/build/wheel.sh has not run"
  fi
fi
if [[ " $wanted " == *" tsan "* ]]; then
  stage "thread sanitizer, build"
  scripts/build.sh tsan "$thread_tests"
  stage "thread sanitizer, tests"
  "${fixed_addresses[@]}" ctest --preset tsan -j "$at_once" -L "$thread_labels" \
    --output-junit tests.xml
  results+=(build-tsan/tests.xml)
fi
scripts/build/skipped.py "${results[@]}"
echo "The sanitizers have found nothing after $SECONDS s: $wanted."
