#!/usr/bin/env bash
# Runs a program on two nodes that are namespaces of this machine, under mpirun or without MPI, and
# counts the bytes that cross the link between them.
#
# usage: two_nodes.sh [--ranks N] [--rate RATE] [--fabric mpi|world] [--json FILE]
#                     PROGRAM [ARGUMENT...]
#   --ranks N      ranks of each node [8]; ranks 0 to N-1 are on node-a, the others on node-b
#   --rate RATE    of the link, in each direction, as tc spells it [1gbit]; none: no limit
#   --fabric F     mpi: one mpirun on both nodes. world: scripts/spawn.sh on each node, and the
#                  ranks join a world; SLUICE_WIRES says what carries tensors, and for "ucx"
#                  UCX_TLS=tcp UCX_NET_DEVICES=veth0 is needed, too [mpi]
#   --json FILE    writes what is printed here, with the results of `sluice-bench reshard` in it
#   Needs root; ends with 77 where it may not make namespaces. Otherwise with the program's code.
#   Whatever ends this script ends its processes, and with them the nodes and the link.
#   Of `sluice-bench reshard` it prints, beside the link's bytes, what its plans have to send over
#   the link, runs to warm up included. Time ratios are of rounds: median [quartiles].
#   Where all ranks share few cores, choose a rate at which the link takes the time, not the ranks:
#   halve it, and the time should double.
#
# example, after `cmake --preset release && ninja -C build sluice-bench`. The plan that crosses once
# against one that sends to each rank by itself, in a minute:
#
#   scripts/two_nodes.sh build/bin/sluice-bench reshard --preset etha-3-no_partial \
#     --shape 4096,4096 --tensors 1 --compare-plans relay,naive -n 11
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
hosts=(node-a node-b)
addresses=(10.77.0.1 10.77.0.2)

fail() {
  local code=$1
  shift
  printf 'two_nodes.sh: %s\n' "$@" >&2
  exit "$code"
}

# A node is a process that sleeps in namespaces of its own: network, host name, shared memory (of
# System V and of POSIX). Ranks of different nodes share files on disk only, and MPI sees two hosts.
# Members of a world look further: processes that see each other are on one node. So the nodes of a
# world have namespaces of process numbers, too. UCX finds its devices in /sys.
start_node() {
  local i=$1 host=${hosts[$1]} flags=()
  [ "$fabric" = mpi ] || flags=(--pid --fork)
  unshare --net --uts --ipc --mount "${flags[@]}" sh -c '
    read -r pid rest </proc/self/stat
    [ $$ = "$pid" ] || { mount -t proc proc /proc && mount -t sysfs sysfs /sys; } || exit 1
    hostname "$1" && mount -t tmpfs -o size=50% tmpfs /dev/shm &&
      mount --bind "$2/hosts" /etc/hosts && ip link set lo up && echo "$pid" >"$2/$1.new" &&
      mv "$2/$1.new" "$2/$1.pid" && exec sleep infinity' node "$host" "$work" &
  local started=$!
  while [ ! -e "$work/$host.pid" ]; do
    kill -0 "$started" 2>/dev/null || fail 77 "could not make $host"
    sleep 0.02
  done
  nodes[i]=$(cat "$work/$host.pid")
}

# A burst takes two of the segments that the kernel hands over as one, of up to 64 KiB each.
limit_link() {
  [ "$rate" != none ] || return 0
  local in_node=(nsenter -t "${nodes[$1]}" -n)
  "${in_node[@]}" tc qdisc add dev veth0 root handle 1: htb default 1 &&
    "${in_node[@]}" tc class add dev veth0 parent 1: classid 1:1 htb \
      rate "$rate" burst 128k cburst 128k quantum 65536
}

join_nodes() {
  ip link add veth0 netns "${nodes[0]}" type veth peer name veth0 netns "${nodes[1]}" ||
    fail 77 "could not make a pair of virtual network devices"
  for i in 0 1; do
    limit_link "$i" || fail 77 "could not limit the link to '$rate' with tc's htb"
    nsenter -t "${nodes[i]}" -n ip address add "${addresses[i]}/24" dev veth0
    nsenter -t "${nodes[i]}" -n ip link set veth0 up
  done
}

# The link's counters as node-a sees them: bytes received, and bytes sent.
link_bytes() { awk '$1 == "veth0:" { print $2, $10 }' "/proc/${nodes[0]}/net/dev"; }

# What mpirun starts its daemon on node-b with, in place of ssh: AGENT HOST COMMAND...
write_agent() {
  cat >"$work/agent" <<'AGENT'
#!/bin/sh
host=$1
shift
exec nsenter -t "$(cat "$(dirname "$0")/$host.pid")" -n -u -i -m sh -c "$*"
AGENT
  chmod +x "$work/agent"
}

# Runs in a process namespace of its own, as its first process: the kernel ends the others with it.
run_on_nodes() {
  local nodes=() before after code=0 start end
  printf '127.0.0.1 localhost\n' >"$work/hosts"
  for i in 0 1; do echo "${addresses[i]} ${hosts[i]}" >>"$work/hosts"; done
  for i in 0 1; do start_node "$i"; done
  join_nodes
  before=$(link_bytes)
  start=$(date +%s.%N)
  "run_$fabric" "$@" || code=$?
  end=$(date +%s.%N)
  after=$(link_bytes)
  echo "$before $after $start $end" >"$work/link"
  exit "$code"
}

run_mpi() {
  write_agent
  mkdir "$work/tmp"
  # There are as many slots as ranks, so mpirun would not know that ranks outnumber cores and that
  # whoever waits has to yield.
  local mpirun=(
    "$here/mpirun.sh" -np $((2 * ranks)) -H "${hosts[0]}:$ranks,${hosts[1]}:$ranks" --bind-to none
    --mca plm_rsh_agent "$work/agent" --mca orte_tmpdir_base "$work/tmp"
    --mca oob_tcp_if_include veth0 --mca btl_tcp_if_include veth0
    --mca pml ob1 --mca btl self,vader,tcp --mca mpi_yield_when_idle 1
  )
  nsenter -t "${nodes[0]}" -n -u -i -m --wd="$PWD" "${mpirun[@]}" "$@"
}

# Each node's ranks are a role of the world. A node whose ranks have failed does not wait for the
# other one's.
run_world() {
  local i code=0
  SLUICE_WORLD=tcp://${addresses[0]}:29600
  SLUICE_TOKEN=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
  SLUICE_ROLES=${hosts[0]}:$ranks,${hosts[1]}:$ranks
  export SLUICE_WORLD SLUICE_TOKEN SLUICE_ROLES
  for i in 0 1; do
    SLUICE_ROLE=${hosts[i]} nsenter -t "${nodes[i]}" -n -u -i -m -p --wd="$PWD" \
      "$here/spawn.sh" -n "$ranks" "$@" &
  done
  for i in 0 1; do
    wait -n || { code=$?; break; }  # whichever ends first: the nodes themselves do not end
  done
  return "$code"
}

# Where `sluice-bench reshard` writes its results; nothing for other programs.
find_results() {
  [ "${2:-}" = reshard ] || return 0
  results=$work/results.json
  local i
  for ((i = 3; i < $#; ++i)); do
    case ${!i} in
      -J | --json) i=$((i + 1)); results=${!i}; return 0 ;;
    esac
  done
  extra=(--json "$results")
}

if [ "${1:-}" = --inside ]; then
  work=$2 ranks=$3 rate=$4 fabric=$5
  shift 5
  run_on_nodes "$@"
fi

usage() {
  sed -n '/^# usage/,/^$/{s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}" | sed '/^set /,$d'
}

ranks=8 rate=1gbit fabric=mpi json=
while [ $# -gt 0 ]; do
  case $1 in
    --ranks | --rate | --fabric | --json) [ $# -ge 2 ] || fail 2 "$1 takes a value" ;;&
    --ranks) ranks=$2; shift 2 ;;
    --rate) rate=$2; shift 2 ;;
    --fabric) fabric=$2; shift 2 ;;
    --json) json=$2; shift 2 ;;
    -h | --help) usage; exit 0 ;;
    -*) fail 2 "there is no option $1" ;;
    *) break ;;
  esac
done
[[ $ranks =~ ^[1-9][0-9]*$ ]] || fail 2 "--ranks takes a number, not '$ranks'"
[[ $rate =~ ^([0-9]+(\.[0-9]+)?([kmgt]i?)?(bit|bps)|none)$ ]] ||
  fail 2 "--rate takes a rate such as 1gbit, or none, not '$rate'"
[[ $fabric =~ ^(mpi|world)$ ]] || fail 2 "--fabric takes mpi or world, not '$fabric'"
if [ $# -eq 0 ]; then
  usage >&2
  exit 2
fi
[ "$(id -u)" -eq 0 ] || fail 77 "making network namespaces takes root"
"$here/packages.sh" iproute2 util-linux
unshare --net --uts --ipc --mount --pid --fork true 2>/dev/null ||
  fail 77 "this system does not let root make namespaces"

work=$(mktemp -d)
job=
finish() {
  # The first process of the job's namespace dies with `unshare`, and all others with it.
  [ -z "$job" ] || kill -KILL "$job" 2>/dev/null || true
  [ -z "$job" ] || wait "$job" 2>/dev/null || true
  rm -rf "$work"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

results='' extra=()
find_results "$@"
setpriv --pdeathsig KILL unshare --pid --fork --kill-child --mount-proc \
  bash "${BASH_SOURCE[0]}" --inside "$work" "$ranks" "$rate" "$fabric" "$@" "${extra[@]}" &
job=$!
code=0
wait "$job" || code=$?
job=
[ -e "$work/link" ] || exit "$code"
read -r in_before out_before in_after out_after start end <"$work/link"
python3 "$here/nodes/two_nodes_report.py" --rate "$rate" --fabric "$fabric" --ranks "$ranks" \
  --json "$json" \
  --results "$results" --seconds "$(awk "BEGIN { print $end - $start }")" --exit-code "$code" \
  --a-to-b $((out_after - out_before)) --b-to-a $((in_after - in_before)) -- "$@"
exit "$code"
