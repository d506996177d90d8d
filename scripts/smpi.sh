#!/usr/bin/env bash
# Runs the real `sluice-bench reshard` on simulated hosts: SimGrid's SMPI, which is an MPI of its
# own with a network model of its own. An independent check of sluice-sim, see docs/large-meshes.md.
#
# usage: smpi.sh -n RANKS [--port-rate GB/S] [--latency-us US] [--poll-us US] RESHARD-FLAG...
#        smpi.sh -n RANKS [the same options] --messages [PROGRAM]
#   Each rank has a host with one port out and one in (50 GB/s), full bisection, a latency between
#   any two (5 us); copies take no time. A rank that waits looks again after --poll-us (1).
#   Times are simulated. Payload is folded: all ranks share a few pages, so nothing is checked.
#   --messages counts the messages that each rank sends in each stage of a session's life, as JSON.
#   Control messages are all but those of tensors. PROGRAM is sluice-smpi-messages, if it is built.
#
# example: smpi.sh -n 64 --shape 8192,8192 --src-mesh 64 --src-ranks 0-63 --src-placements 'S(0)' \
#            --dst-mesh 64 --dst-ranks 0-63 --dst-placements 'S(1)' --budget-buckets 8
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

usage() {
  sed -n '/^# usage/,/^$/{s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}" | sed '/^set /,$d'
}

ranks='' port_rate=50 latency_us=5 poll_us=1 messages=false program=''
while [ $# -gt 0 ]; do
  case $1 in
    -n | --port-rate | --latency-us | --poll-us)
      if ! [[ ${2:-} =~ ^[0-9]+(\.[0-9]+)?$ ]]; then
        echo "smpi.sh: $1 takes a number" >&2
        exit 2
      fi ;;&
    -n) ranks=$2; shift 2 ;;
    --port-rate) port_rate=$2; shift 2 ;;
    --latency-us) latency_us=$2; shift 2 ;;
    --poll-us) poll_us=$2; shift 2 ;;
    --messages) messages=true program=${2:-}; break ;;
    -h | --help) usage; exit 0 ;;
    *) break ;;
  esac
done
if ! [[ $ranks =~ ^[1-9][0-9]*$ ]]; then
  usage >&2
  exit 2
fi

if ! $messages; then
  target=sluice-bench-smpi
  arguments=(reshard --check 0 --warmup 0 --iters 1 --ranks-per-node 8 --budget-bytes 0
             --timeout-s 1000000 --transport mpi --memory private "$@")
else
  target=sluice-smpi-messages
  arguments=()
fi
if [ -z "$program" ]; then
  "$here/packages.sh" libsimgrid-dev
  "$here/build.sh" smpi "$target" >/dev/null
  program=$here/../build-smpi/bin/$target
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# The links of a host are half of the way each.
half_us=$(awk "BEGIN { print $latency_us / 2 }")
cat >"$work/platform.xml" <<XML
<?xml version="1.0"?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <cluster id="mesh" prefix="rank" suffix="" radical="0-$((ranks - 1))" speed="1Gf"
           bw="${port_rate}GBps" lat="${half_us}us" sharing_policy="SPLITDUPLEX"/>
</platform>
XML
seq -f 'rank%g' 0 $((ranks - 1)) >"$work/hosts"

# A fluid model with shares that are fair from end to end, and no more: none of what SimGrid knows
# of TCP and of particular MPIs. Every message waits for its receiver, whatever its size.
simgrid=(
  network/model:CM02 network/latency-factor:1 network/bandwidth-factor:1 network/weight-S:0
  network/TCP-gamma:0 network/crosstraffic:no
  smpi/simulate-computation:no smpi/test:0 smpi/iprobe:0
  smpi/send-is-detached-thresh:0 smpi/async-small-thresh:0
)
export SLUICE_SMPI_POLL_US=$poll_us
smpirun -no-privatize -np "$ranks" -platform "$work/platform.xml" -hostfile "$work/hosts" \
  "${simgrid[@]/#/--cfg=}" --log=root.thres:error "$program" "${arguments[@]}"
