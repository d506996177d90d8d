"""Sluice's own wires between two nodes, TCP and UCX, against Open MPI over TCP.

The nodes are network namespaces of this machine, joined by a link. Both ranks have the machine's
cores for themselves only where nothing else runs. Takes root, and a program that is built with MPI.
A case is the size of the one bucket that a transfer is.

example, two minutes: compare.py wires --rounds 5 --json /tmp/wires.json
"""
import itertools
import os
import re
import subprocess
import sys
import tempfile
import time

from rounds import MPIRUN, ROOT, CannotRun, call, positive, results_of

sys.path.append(str(ROOT / "scripts/nodes"))
import two_hosts  # noqa: E402  after the folder is known

NODES = ("node-a", "node-b")


def options(parser):
    parser.add_argument("--iters", type=positive, default=21,
                        help="timed transfers of each size in a round; their median counts [21]")
    parser.add_argument("--from", dest="least", default="64K",
                        help="sizes are times 4 from one to the next [64K]")
    parser.add_argument("--to", dest="most", default="64M", help="[64M]")
    parser.add_argument("--wires", default="tcp,ucx", help="of tcp and ucx [tcp,ucx]")
    parser.add_argument("--rate", default="none",
                        help="of the link, each way, as tc spells it; none: no limit [none]")
    parser.set_defaults(rounds=9)


def BASELINE(way):
    return "mpi," + way.split(",")[1]


def build(args):
    if not re.fullmatch(r"(tcp|ucx)(,(tcp|ucx))*", args.wires):
        raise ValueError(f"--wires takes tcp and ucx, not '{args.wires}'")
    if "\nbuilt in: MPI" not in call([args.bin / "sluice-bench", "--version"]):
        raise CannotRun("sluice-bench is built without MPI")
    if args.rate != "none":
        two_hosts.check_rate(args.rate)
    call([ROOT / "scripts/packages.sh", "iproute2", "util-linux"])
    args.work = args.stack.enter_context(tempfile.TemporaryDirectory(prefix="wires-"))
    try:
        # Both are one host by name, so that one clock times both ranks.
        nodes = two_hosts.TwoHosts(None if args.rate == "none" else args.rate, NODES, apart=(),
                                   names_file=f"{args.work}/hosts")
    except two_hosts.NotAllowed as error:
        raise CannotRun(str(error)) from error
    args.stack.callback(nodes.end)
    args.agent = nodes.write_agent(args.work)
    os.mkdir(f"{args.work}/tmp")
    args.nodes = [nodes.on(node, []) for node in range(2)]
    # UCX does not see a link before the system says that it is up, which takes up to a second.
    for node in args.nodes:
        while call([*node, "cat", f"/sys/class/net/{two_hosts.DEVICE}/operstate"]) != "up\n":
            time.sleep(0.02)
    args.ports = itertools.count(29601)
    args.command = [
        args.bin / "sluice-bench", "reshard", "--shape", 16384, "-b", args.least, "-e", args.most,
        "-f", 4, "--src", "1:R", "--dst", "1@1:R", "--transport", "mpi", "--bucket-bytes",
        args.most, "--budget-buckets", 2, "--check", "sample", "-n", args.iters, "-w", 3]


def cases(_):
    return [{}]


def turns(args):
    return [lambda wire=wire: times(wire, over_mpi(args) if wire == "mpi" else
                                    over_world(args, wire))
            for wire in ("mpi", *args.wires.split(","))]


def over_mpi(args):
    """Direct copies are off."""
    return results_of(
        [*args.nodes[0], MPIRUN[0], "-np", 2, "-H", "node-a:1,node-b:1", "--bind-to", "none",
         "--mca", "plm_rsh_agent", args.agent, "--mca", "orte_tmpdir_base",
         f"{args.work}/tmp", "--mca", "oob_tcp_if_include", "veth0", "--mca", "btl_tcp_if_include",
         "veth0", "--mca", "pml", "ob1", "--mca", "btl", "self,tcp", *args.command, "--fabric",
         "mpi"])


def over_world(args, wire):
    variables = {"SLUICE_WORLD": f"tcp://10.78.0.1:{next(args.ports)}", "SLUICE_TOKEN": args.work,
                 "SLUICE_SIZE": "2", "SLUICE_WIRES": wire, "UCX_TLS": "tcp",
                 "UCX_NET_DEVICES": "veth0"}
    command = [*args.command, "--fabric", "world"]
    other = subprocess.Popen(list(map(str, [*args.nodes[1], *command])), stdout=subprocess.DEVNULL,
                             env={**os.environ, **variables, "SLUICE_RANK": "1"})
    try:
        return results_of([*args.nodes[0], *command], variables={**variables, "SLUICE_RANK": "0"})
    finally:
        try:
            other.wait(timeout=60)
        except subprocess.TimeoutExpired:
            other.kill()
            other.wait()


def times(wire, found):
    carried = ", ".join(f"{each['wire']} {each['library']}".strip() for each in found["wires"])
    return {f"{wire}, {result['payload_bytes']} B": {
        "carried_by": carried, "time_us": float(result["time_us"]["median"]),
        "gb_per_s": result["payload_bytes"] / result["time_us"]["median"] / 1e3}
        for result in found["results"]}
