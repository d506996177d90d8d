#!/usr/bin/env bash
# Makes two nodes for compare.py wires, of network namespaces that a link joins, and keeps them
# until its input ends.
# usage: wires.sh RATE      of the link, in each direction, as tc spells it; none: no limit
#   Prints one line: the processes of both nodes, and a folder for mpirun with `agent` and `tmp`.
#   Needs root; ends with 77 where it may not make namespaces.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
rate=$1
hosts=(node-a node-b)
addresses=(10.78.0.1 10.78.0.2)

fail() {
  local code=$1
  shift
  printf 'wires.sh: %s\n' "$@" >&2
  exit "$code"
}

# A node is a process that sleeps in a network of its own. UCX finds its devices in /sys. Both are
# one host by name, so that one clock times both ranks.
start_node() {
  unshare --net --mount sh -c '
    mount --bind "$1/hosts" /etc/hosts && mount -t sysfs node /sys && ip link set lo up &&
      touch "$1/ready-$2" && exec sleep infinity' node "$work" "$1" >&2 &
  nodes[$1]=$!
  echo "$!" >"$work/${hosts[$1]}.pid"
  while [ ! -e "$work/ready-$1" ]; do
    kill -0 "${nodes[$1]}" 2>/dev/null || fail 77 'could not make a network namespace'
    sleep 0.02
  done
}

in_node() {
  local i=$1
  shift
  nsenter -t "${nodes[$i]}" -n -m "$@"
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

[[ $rate =~ ^([0-9]+(\.[0-9]+)?([kmgt]i?)?(bit|bps)|none)$ ]] ||
  fail 2 "the link takes a rate such as 10gbit, or none, not '$rate'"
[ "$(id -u)" -eq 0 ] || fail 77 'making network namespaces takes root'
"$here/../packages.sh" iproute2 util-linux >&2
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
echo "${nodes[*]} $work"
cat >/dev/null
