#!/usr/bin/env bash
# Checks the model of the gate, tests/model/gate.pml, with Spin. With all premises on there is no
# error in any order of events. Without one of them there is the error that docs/gate.md names.
#
# usage: model.sh    prints a table; fails if a line does not show what it must
#
# "states" is how many were visited: all of them where there is no error, otherwise those up to it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

. scripts/build/usage.sh
show_usage "scripts/build/${0##*/}" "$@"

model=$PWD/tests/model/gate.pml

# The switches, and what they must show.
lines=(
  "|no error"
  "-DBUCKETS=4 -DPAIRS|no error"
  "-DLANES -DPAIRS|no error"
  "-DSTREAMS -DPAIRS|no error"
  "-DPLAIN|deadlock"
  "-DLANES -DPAIRS -DNO_RESERVE|deadlock"
  "-DLANES -DPAIRS -DNO_ANNOUNCEMENTS|deadlock"
  "-DEAGER|over the budget"
  "-DOUT_OF_ORDER|wrong bytes"
  "-DSHARED_TAG|wrong bytes"
  "-DSTREAMS -DPAIRS -DREUSED_CONTEXT|wrong bytes"
)

for tool in spin gcc; do
  command -v "$tool" >/dev/null || { echo "model.sh: '$tool' is missing" >&2; exit 1; }
done

# One line: compiles its verifier in a folder of its own, and runs it.
check() {
  local switches=${1%|*} expected=${1#*|} found states begin=$SECONDS
  mkdir "$2"
  cd "$2"
  # shellcheck disable=SC2086  # several switches
  spin -a $switches "$model" >spin.log 2>&1
  gcc -O0 -DSAFETY -DVECTORSZ=256 -DNOFAIR -o pan pan.c 2>gcc.log
  # Without a limit on the depth that could cut something off: more than that is an error.
  ./pan -b -m10000 -w24 >pan.log 2>&1 || true
  states=$(sed -n 's/^ *\([0-9]*\) states, stored.*/\1/p' pan.log)
  case $(grep -m1 '^pan:1:' pan.log || true) in
    *'invalid end state'*) found=deadlock ;;
    *'sent==wanted'*) found='wrong bytes' ;;
    *unasked*) found='over the budget' ;;
    *credit*) found='the rule is broken' ;;
    '') found='no error' ;;
    *) found='another error' ;;
  esac
  grep -q 'errors: [01]$' pan.log || found='not finished'
  local shown=${switches//-D/}
  printf '%-40s %-18s %-18s %10s %8s\n' "${shown:-none}" "$expected" "$found" "${states:-?}" \
    $((SECONDS - begin))
  if [ "$found" != "$expected" ]; then
    tail -n 20 spin.log gcc.log pan.log
    return 1
  fi
}
export -f check
export model

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
printf '%-40s %-18s %-18s %10s %8s\n' switches expected found states seconds
number=0
for line in "${lines[@]}"; do
  printf '%s\0%s\0' "$line" "$work/$((number++))"
done | xargs -0 -n 2 -P "$(nproc)" bash -euo pipefail -c 'check "$1" "$2"' check ||
  { echo "model.sh: a line does not show what it must" >&2; exit 1; }
