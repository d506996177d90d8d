#!/usr/bin/env bash
# All tests: the release build's, with mpirun and from an install tree; those of code that handles
# memory under the address and undefined sanitizers, those with threads under the thread sanitizer.
# (The presets asan and tsan have all suites of one process.) Installs missing packages first.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
jobs=$(nproc)

scripts/packages.sh
scripts/build.sh release
ctest --test-dir build --output-on-failure -j "$jobs"

# The thread sanitizer of GCC 12 cannot place its shadow memory where the kernel randomises more
# address bits than it knows of.
fixed_addresses=()
if setarch -R true 2>/dev/null; then fixed_addresses=(setarch -R); fi
scripts/build.sh asan sluice_memory_tests
"${fixed_addresses[@]}" ctest --preset asan-memory -j "$jobs"
scripts/build.sh tsan sluice_thread_tests
"${fixed_addresses[@]}" ctest --preset tsan -j "$jobs" -L threads
echo "All tests passed: release, with mpirun, from an install tree, and under the sanitizers."
