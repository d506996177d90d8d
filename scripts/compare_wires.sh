#!/usr/bin/env bash
# Compares what carries buckets between two nodes: Sluice's own wires, TCP and UCX, against Open MPI
# over TCP. The nodes are network namespaces of this machine, joined by a link.
#
# usage: compare_wires.sh [--rounds N] [--iterations N] [--from SIZE] [--to SIZE] [--wires LIST]
#                         [--rate RATE] [--json FILE] [SLUICE_BENCH]
#   --rounds N       each runs all wires once, every other round backwards [9]
#   --iterations N   timed transfers of each size in a round, of which the median counts [21]
#   --from, --to     sizes of the one bucket that a transfer is, times 4 from one to the next
#                    [64K, 64M]
#   --wires LIST     of tcp and ucx [tcp,ucx]
#   --rate RATE      of the link, in each direction, as tc spells it; none: no limit [none]
#   --json FILE      writes the results of all runs here
#   SLUICE_BENCH     the program [build/bin/sluice-bench]
#   A ratio is the time of Open MPI / ours in the same round: above 1, ours is faster. Both ranks
#   have the machine's cores for themselves only where nothing else runs.
#   Needs root, and a program that is built with MPI; ends with 77 where it may not make namespaces.
#
# example, two minutes:
#
#   scripts/compare_wires.sh --rounds 5 --json /tmp/wires.json
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
hosts=(node-a node-b)
addresses=(10.78.0.1 10.78.0.2)
port=29600

fail() {
  local code=$1
  shift
  printf 'compare_wires.sh: %s\n' "$@" >&2
  exit "$code"
}

usage() {
  sed -n '/^# usage/,/^$/{s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}" | sed '/^set /,$d'
}

# A node is a process that sleeps in a network of its own. UCX finds its devices in /sys. Both are
# one host by name, so that one clock times both ranks.
start_node() {
  unshare --net --mount sh -c '
    mount --bind "$1/hosts" /etc/hosts && mount -t sysfs node /sys && ip link set lo up &&
      touch "$1/ready-$2" && exec sleep infinity' node "$work" "$1" &
  nodes[$1]=$!
  echo "$!" >"$work/${hosts[$1]}.pid"
  while [ ! -e "$work/ready-$1" ]; do
    kill -0 "${nodes[$1]}" 2>/dev/null || fail 77 'could not make a network namespace'
    sleep 0.02
  done
}

# As scripts/two_nodes.sh does.
limit_link() {
  [ "$rate" != none ] || return 0
  in_node "$1" tc qdisc add dev veth0 root handle 1: htb default 1 &&
    in_node "$1" tc class add dev veth0 parent 1: classid 1:1 htb \
      rate "$rate" burst 128k cburst 128k quantum 65536
}

# What mpirun starts its daemon on node-b with, in place of ssh: AGENT HOST COMMAND...
write_agent() {
  cat >"$work/agent" <<'AGENT'
#!/bin/sh
host=$1
shift
exec nsenter -t "$(cat "$(dirname "$0")/$host.pid")" -n -m sh -c "$*"
AGENT
  chmod +x "$work/agent"
}

in_node() {
  local i=$1
  shift
  nsenter -t "${nodes[$i]}" -n -m --wd="$PWD" "$@"
}

# Each runs the same transfers, from rank 0 to rank 1, and writes $1. Direct copies are off.
run_mpi() {
  in_node 0 "$here/mpirun.sh" -np 2 -H "${hosts[0]}:1,${hosts[1]}:1" --bind-to none \
    --mca plm_rsh_agent "$work/agent" --mca orte_tmpdir_base "$work/tmp" \
    --mca oob_tcp_if_include veth0 --mca btl_tcp_if_include veth0 \
    --mca pml ob1 --mca btl self,tcp "$bench" "${arguments[@]}" --fabric mpi --json "$1"
}

run_world() {
  local i pids=() code=0
  port=$((port + 1))
  for i in 0 1; do
    SLUICE_WORLD=tcp://${addresses[0]}:$port SLUICE_TOKEN=$work SLUICE_RANK=$i SLUICE_SIZE=2 \
      SLUICE_WIRES=$2 UCX_TLS=tcp UCX_NET_DEVICES=veth0 \
      nsenter -t "${nodes[$i]}" -n -m --wd="$PWD" \
      "$bench" "${arguments[@]}" --fabric world --json "$1" &
    pids[i]=$!
  done
  for i in 0 1; do wait "${pids[i]}" || code=$?; done
  return "$code"
}

run() {
  local file=$work/$2-$1.json
  case $2 in
    mpi) run_mpi "$file" ;;
    *) run_world "$file" "$2" ;;
  esac >"$work/log" 2>&1 || { cat "$work/log" >&2; fail 1 "$2 has failed in round $1"; }
}

rounds=9 iterations=21 from=64K to=64M wires=tcp,ucx rate=none json='' bench=build/bin/sluice-bench
while [ $# -gt 0 ]; do
  case $1 in
    --rounds | --iterations | --from | --to | --wires | --rate | --json)
      [ $# -ge 2 ] || fail 2 "$1 takes a value" ;;&
    --rounds) rounds=$2; shift 2 ;;
    --iterations) iterations=$2; shift 2 ;;
    --from) from=$2; shift 2 ;;
    --to) to=$2; shift 2 ;;
    --wires) wires=$2; shift 2 ;;
    --rate) rate=$2; shift 2 ;;
    --json) json=$2; shift 2 ;;
    -h | --help) usage; exit 0 ;;
    -*) fail 2 "there is no option $1" ;;
    *) bench=$1; shift ;;
  esac
done
[[ $rounds =~ ^[1-9][0-9]*$ ]] || fail 2 "--rounds takes a number, not '$rounds'"
[[ $iterations =~ ^[1-9][0-9]*$ ]] || fail 2 "--iterations takes a number, not '$iterations'"
[[ $wires =~ ^(tcp|ucx)(,(tcp|ucx))*$ ]] || fail 2 "--wires takes tcp and ucx, not '$wires'"
[[ $rate =~ ^([0-9]+(\.[0-9]+)?([kmgt]i?)?(bit|bps)|none)$ ]] ||
  fail 2 "--rate takes a rate such as 10gbit, or none, not '$rate'"
[ -x "$bench" ] || fail 2 "there is no program $bench"
"$bench" --version | grep -q '^built in: MPI' || fail 77 "$bench is built without MPI"
[ "$(id -u)" -eq 0 ] || fail 77 'making network namespaces takes root'
"$here/packages.sh" iproute2 util-linux
unshare --net --mount true 2>/dev/null || fail 77 'this system does not let root make namespaces'

work=$(mktemp -d)
nodes=()
finish() {
  if [ ${#nodes[@]} -gt 0 ]; then
    kill -KILL "${nodes[@]}" 2>/dev/null || true
    wait "${nodes[@]}" 2>/dev/null || true
  fi
  rm -rf "$work"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
bench=$(readlink -f "$bench")
mkdir "$work/tmp"
printf '127.0.0.1 localhost\n' >"$work/hosts"
for i in 0 1; do echo "${addresses[i]} ${hosts[i]}" >>"$work/hosts"; done
start_node 0
start_node 1
write_agent
ip link add veth0 netns "${nodes[0]}" type veth peer name veth0 netns "${nodes[1]}" ||
  fail 77 'could not make a pair of virtual network devices'
for i in 0 1; do
  limit_link "$i" || fail 77 "could not limit the link to '$rate' with tc's htb"
  in_node "$i" ip address add "${addresses[i]}/24" dev veth0
  in_node "$i" ip link set veth0 up
done
# UCX does not see a link before the system says that it is up, which takes up to a second.
for i in 0 1; do
  until [ "$(in_node "$i" cat /sys/class/net/veth0/operstate)" = up ]; do sleep 0.02; done
done

arguments=(reshard --shape 16384 -b "$from" -e "$to" -f 4 --src 1:R --dst 1@1:R --transport mpi
  --bucket-bytes "$to" --budget-buckets 2 --check sample -n "$iterations" -w 3)
IFS=, read -ra all <<<"mpi,$wires"
for ((round = 0; round < rounds; ++round)); do
  for ((turn = 0; turn < ${#all[@]}; ++turn)); do
    index=$turn
    if ((round % 2 == 1)); then index=$((${#all[@]} - 1 - turn)); fi
    run "$round" "${all[index]}"
  done
done
python3 "$here/compare_wires.py" --json "$json" --rounds "$rounds" --wires "$wires" "$work"
