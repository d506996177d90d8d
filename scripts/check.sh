#!/usr/bin/env bash
# clang-format and clang-tidy on what changed. Installs them first.
#
# usage: check.sh [--minutes N] [BASE]
#   BASE           what to compare the working tree with [where this branch left origin/main; if it
#                  did not, the commit before the last; with only one commit, nothing]
#   --minutes N    starts no clang-tidy after so many minutes, and says what was left out [5]
#
# Of headers, clang-tidy sees what the changed sources include. Debian 12's clang-format (14) is the
# one that counts: others differ in details, and are not asked.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

minutes=5
if [ "${1:-}" = --minutes ]; then
  minutes=${2:?--minutes takes a number}
  shift 2
fi
fail() {
  echo "check.sh: $*" >&2
  exit 2
}
[[ $minutes =~ ^[0-9]+$ ]] || fail "--minutes takes a number, not '$minutes'"

find_base() {
  local head base
  head=$(git rev-parse HEAD)
  base=$(git merge-base HEAD origin/main 2>/dev/null || true)
  if [ -z "$base" ] || [ "$base" = "$head" ]; then
    base=$(git rev-parse --verify --quiet HEAD~1 || git hash-object -t tree /dev/null)
  fi
  echo "$base"
}
if [ -n "${1:-}" ]; then
  base=$(git rev-parse --verify --quiet "$1^{commit}") || fail "there is no commit '$1'"
else
  base=$(find_base)
fi

mapfile -t changed < <(
  { git diff --name-only --diff-filter=d "$base" -- '*.cc' '*.h'
    git ls-files --others --exclude-standard -- '*.cc' '*.h'; } | sort -u)
echo "${#changed[@]} sources and headers changed since $(git rev-parse --short "$base")."
[ ${#changed[@]} -gt 0 ] || exit 0

scripts/packages.sh clang-format clang-tidy
failed=0
if clang-format --version | grep -q 'version 14\.'; then
  clang-format --dry-run -Werror "${changed[@]}" || failed=1
else
  echo "Not asked: $(clang-format --version), for its taste is not that of version 14."
fi

# The compiler's commands without precompiled headers, which clang cannot read.
build=build-tidy
cmake --preset release -B $build -DSLUICE_PCH=OFF -DSLUICE_UNITY=OFF -DSLUICE_CUDA=OFF >/dev/null
mapfile -t sources < <(python3 - $build/compile_commands.json "${changed[@]}" <<'PYTHON'
import json, os, sys
compiled = {os.path.relpath(entry["file"]) for entry in json.load(open(sys.argv[1]))}
# What users run first: there may not be time for all.
print("\n".join(sorted(compiled.intersection(sys.argv[2:]),
                       key=lambda path: (not path.startswith(("src/", "include/")), path))))
PYTHON
)
tidy_one() {
  if [ "$(date +%s)" -ge "$1" ]; then
    echo "$3" >>"$2/late"
    return 0
  fi
  clang-tidy --quiet -p "$4" "$3" >"$2/out.$$" 2>/dev/null && return 0
  cat "$2/out.$$"
  return 1
}
export -f tidy_one
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if [ -n "${sources[*]:-}" ]; then
  printf '%s\0' "${sources[@]}" |
    xargs -0 -I{} -P "$(nproc)" bash -c 'tidy_one "$@"' tidy \
      "$(($(date +%s) + 60 * minutes))" "$work" {} "$build" || failed=1
fi
if [ -e "$work/late" ]; then
  echo "Not looked at by clang-tidy, for want of time (--minutes $minutes):"
  sort "$work/late" | sed 's/^/  /'
fi
[ $failed -eq 0 ] || { echo "check.sh: found faults" >&2; exit 1; }
echo "clang-format and clang-tidy have nothing to say."
