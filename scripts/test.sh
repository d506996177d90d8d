#!/usr/bin/env bash
# All tests: the release build's, with mpirun and from an install tree, then the single-process
# suites under the address, undefined and thread sanitizers. Installs missing packages first.
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
for preset in asan tsan; do
  scripts/build.sh "$preset" sluice_tests
  "${fixed_addresses[@]}" ctest --preset "$preset" -j "$jobs"
done
echo "All tests passed: release, with mpirun, from an install tree, and under the sanitizers."
