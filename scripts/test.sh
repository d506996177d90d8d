#!/usr/bin/env bash
# All tests: the release build's, with mpirun and from an install tree; the model of the gate; 40
# random jobs; those of code that handles memory under the address and undefined sanitizers, with
# two ranks under mpirun too; those with threads under the thread sanitizer. (The presets asan and
# tsan have all suites of one process.) Installs missing packages first. Ends with what was skipped,
# and why; with CI=true it fails if that is more than scripts/may_skip.txt allows.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
jobs=$(nproc)

scripts/packages.sh
scripts/build.sh release
ctest --test-dir build --output-on-failure -j "$jobs" --output-junit tests.xml
scripts/model.sh
scripts/chaos.py --runs 40

# The thread sanitizer of GCC 12 cannot place its shadow memory where the kernel randomises more
# address bits than it knows of.
fixed_addresses=()
if setarch -R true 2>/dev/null; then fixed_addresses=(setarch -R); fi
scripts/build.sh asan sluice_memory_tests
"${fixed_addresses[@]}" ctest --preset asan-memory -j "$jobs" --output-junit tests.xml
scripts/build.sh tsan sluice_thread_tests
"${fixed_addresses[@]}" ctest --preset tsan -j "$jobs" -L threads --output-junit tests.xml
scripts/skipped.py build/tests.xml build-asan/tests.xml build-tsan/tests.xml
echo "All tests passed: release, with mpirun, from an install tree, model, random jobs, sanitizers."
