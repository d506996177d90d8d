#!/usr/bin/env python3
"""Runs a program on two nodes that are namespaces of this machine, under mpirun or without MPI, and
counts the bytes that cross the link between them.

Needs root; ends with 77 where it may not make namespaces. Otherwise with the program's code.
Whatever ends this script ends its processes, and with them the nodes and the link.
Of `sluice-bench reshard` it prints, beside the link's bytes, what its plans have to send over the
link, runs to warm up included. Time ratios are of rounds: median [quartiles].
Where all ranks share few cores, choose a rate at which the link takes the time, not the ranks:
halve it, and the time should double.

example, after `cmake --preset release && ninja -C build sluice-bench`. The plan that crosses once
against one that sends to each rank by itself, in a minute:

  scripts/two_nodes.sh build/bin/sluice-bench reshard --preset etha-3-no_partial \\
    --shape 4096,4096 --tensors 1 --compare-plans relay,naive -n 11
"""
import argparse
import json
import os
import pathlib
import secrets
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
import two_hosts  # noqa: E402  (beside this file)

SCRIPTS = pathlib.Path(__file__).resolve().parents[1]
NODES = ("node-a", "node-b")
ADDRESSES = ("10.77.0.1", "10.77.0.2")
INCLUDES = ("All bytes since before mpirun started: payload of all runs, those to warm up too, "
            "starting and ending the job, headers (Ethernet, IP, TCP; one for up to 64 KiB, as the "
            "kernel segments later) and acknowledgements.")


def planned_bytes(args, bench):
    """Bytes from node-a to node-b, and back, of a run of each plan, by the plan's name.

    None where that is not to be had: of another program, of several cases, of plans for other nodes
    or budgets, or where others than plans have sent.
    """
    config = bench["config"]
    if config["ranks_per_node"] or config["compare_budgets"] or config["baselines"]:
        return None
    command = without_json(args.command)
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "plans.json")
        done = subprocess.run(command + ["--plan-only", "--ranks-per-node", str(args.ranks),
                                         "--json", file], stdout=subprocess.DEVNULL, check=False)
        if done.returncode != 0:
            return None
        with open(file, encoding="utf-8") as results:
            plans = json.load(results)["results"]
    bytes_of = {}
    for plan in plans:
        across = [0, 0]
        for route in plan["routes"]:
            src, dst = route["src"] // args.ranks, route["dst"] // args.ranks
            if src != dst:
                across[src] += route["bytes"]
        bytes_of[plan["plan"]] = across
    return bytes_of if len(bytes_of) == len(plans) else None


def without_json(command):
    kept = list(command)
    for flag in ("-J", "--json"):
        if flag in kept:
            at = kept.index(flag)
            del kept[at:at + 2]
    return kept


def quantile(values, share):
    return sorted(values)[int(share * (len(values) - 1) + 0.5)]


def compare(first, other):
    """The rounds' ratios of times."""
    ratios = [theirs / ours for theirs, ours in zip(other["iterations_us"], first["iterations_us"])]
    return {"median": statistics.median(ratios), "p25": quantile(ratios, 0.25),
            "p75": quantile(ratios, 0.75)}


def run_facts(result, first, planned):
    facts = {"case": result["case"], "plan": result["plan"],
             "median_ms": result["time_us"]["median"] / 1e3,
             "payload_bytes": result["payload_bytes"]}
    if planned:
        facts["planned_a_to_b_bytes"], facts["planned_b_to_a_bytes"] = planned[result["plan"]]
    if result is not first:
        facts["time_over_first"] = compare(first, result)
    return facts


def add_results(args, bench, out):
    results, config = bench["results"], bench["config"]
    out["results"] = bench
    if not results or any(result.get("baselines") for result in results):
        return
    out["runs"] = config["warmup"] + config["iters"]  # of each result
    planned = planned_bytes(args, bench)
    out["compared"] = [run_facts(result, results[0], planned) for result in results]
    if planned:
        for way in ("a_to_b_bytes", "b_to_a_bytes"):
            out["planned_" + way] = out["runs"] * sum(
                facts["planned_" + way] for facts in out["compared"])


def report(args, results, link, code):
    out = {"rate": args.rate, "fabric": args.fabric, "ranks_per_node": args.ranks,
           "command": args.command, "exit_code": code, **link, "includes": INCLUDES}
    if results and results.exists():
        add_results(args, json.loads(results.read_text(encoding="utf-8")), out)
    return out


def result_line(facts):
    line = f"# {facts['case']} : median {facts['median_ms']:.1f} ms"
    if "time_over_first" in facts:
        line += ", {median:.2f} [{p25:.2f} .. {p75:.2f}] times the first".format(
            **facts["time_over_first"])
    line += f"; delivered to other ranks: {facts['payload_bytes']} bytes"
    if "planned_a_to_b_bytes" in facts:
        line += "; to cross: {planned_a_to_b_bytes}, back: {planned_b_to_a_bytes}".format(**facts)
    return line


def show(out):
    print(f"# Two nodes of {out['ranks_per_node']} ranks, link of {out['rate']} each way; the "
          f"job took {out['seconds']:.2f} s")
    for facts in out.get("compared", []):
        print(result_line(facts))
    print(f"# Link, node-a to node-b : {out['a_to_b_bytes']} bytes; back: {out['b_to_a_bytes']}")
    if "planned_a_to_b_bytes" in out:
        print("# Planned, {runs} runs of each : {planned_a_to_b_bytes} bytes; back: "
              "{planned_b_to_a_bytes}".format(**out))
    print("# Link: " + out["includes"].replace(": ", ":\n#   ").replace("TCP; ", "TCP;\n#   "))


def fail(code, text):
    print(f"two_nodes.sh: {text}", file=sys.stderr)
    sys.exit(code)


def parse():
    parser = argparse.ArgumentParser(
        prog="two_nodes.sh", usage="%(prog)s [OPTION...] PROGRAM [ARGUMENT...]",
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=8, metavar="N",
                        help="of each node [8]; ranks 0 to N-1 are on node-a, the others on node-b")
    parser.add_argument("--rate", default="1gbit", metavar="RATE",
                        help="of the link, in each direction, as tc spells it [1gbit]; none: no "
                             "limit")
    parser.add_argument("--fabric", default="mpi", choices=("mpi", "world"),
                        help="mpi: one mpirun on both nodes. world: scripts/spawn.sh on each node, "
                             "and the ranks join a world; SLUICE_WIRES says what carries tensors, "
                             "and for \"ucx\" UCX_TLS=tcp UCX_NET_DEVICES=veth0 is needed, too "
                             "[mpi]")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE",
                        help="writes what is printed here, with the results of `sluice-bench "
                             "reshard` in it")
    parser.add_argument("--inside", metavar="FOLDER", help=argparse.SUPPRESS)
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="PROGRAM")
    args = parser.parse_args()
    if not args.command:
        parser.print_usage(sys.stderr)
        sys.exit(2)
    if args.ranks < 1:
        parser.error(f"--ranks takes a number, not '{args.ranks}'")
    try:
        two_hosts.check_rate("1gbit" if args.rate == "none" else args.rate)
    except ValueError as error:
        parser.error(f"--rate takes {error}, or none")
    return args


# ---- Inside a namespace of processes, whose first one this script is: the kernel ends all with it.

def link_bytes(nodes):
    """The link's counters as node-a sees them: bytes received, and bytes sent."""
    for line in pathlib.Path(f"/proc/{nodes.firsts[0]}/net/dev").read_text().splitlines():
        name, _, counters = line.partition(":")
        if name.strip() == two_hosts.DEVICE:
            words = counters.split()
            return int(words[0]), int(words[8])
    raise ValueError("node-a has no link")


def run_mpi(args, nodes):
    """There are as many slots as ranks, so mpirun would not know that ranks outnumber cores and
    that whoever waits has to yield."""
    folder = pathlib.Path(args.inside)
    (folder / "tmp").mkdir()
    places = ",".join(f"{name}:{args.ranks}" for name in NODES)
    settings = {"plm_rsh_agent": nodes.write_agent(folder), "orte_tmpdir_base": folder / "tmp",
                "oob_tcp_if_include": two_hosts.DEVICE, "btl_tcp_if_include": two_hosts.DEVICE,
                "pml": "ob1", "btl": "self,vader,tcp", "mpi_yield_when_idle": 1}
    mpirun = [SCRIPTS / "mpirun.sh", "-np", 2 * args.ranks, "-H", places, "--bind-to", "none"]
    for name, value in settings.items():
        mpirun += ["--mca", name, value]
    return subprocess.call(list(map(str, nodes.on(0, [*mpirun, *args.command]))))


def run_world(args, nodes):
    """Each node's ranks are a role of the world. A node whose ranks have failed does not wait for
    the other one's."""
    world = dict(os.environ, SLUICE_WORLD=f"tcp://{ADDRESSES[0]}:29600",
                 SLUICE_TOKEN=secrets.token_hex(16),
                 SLUICE_ROLES=",".join(f"{name}:{args.ranks}" for name in NODES))
    spawn = [str(SCRIPTS / "spawn.sh"), "-n", str(args.ranks), *args.command]
    jobs = [subprocess.Popen(nodes.on(node, spawn), env=dict(world, SLUICE_ROLE=name))
            for node, name in enumerate(NODES)]
    while True:
        codes = [job.poll() for job in jobs]
        if any(codes) or None not in codes:
            return next(filter(None, codes), 0)
        time.sleep(0.02)


def run_inside(args):
    # Members of a world see who is on their node by the processes that they see. MPI starts its
    # daemons from one node on the other one.
    apart = ("uts", "ipc") if args.fabric == "mpi" else ("uts", "ipc", "pid")
    try:
        nodes = two_hosts.TwoHosts(None if args.rate == "none" else args.rate, NODES, ADDRESSES,
                                   apart, pathlib.Path(args.inside, "hosts"))
    except two_hosts.NotAllowed as error:
        fail(77, error)
    received, sent = link_bytes(nodes)
    begin = time.monotonic()
    code = (run_mpi if args.fabric == "mpi" else run_world)(args, nodes)
    seconds = time.monotonic() - begin
    now_received, now_sent = link_bytes(nodes)
    pathlib.Path(args.inside, "link").write_text(json.dumps(
        {"seconds": seconds, "a_to_b_bytes": now_sent - sent,
         "b_to_a_bytes": now_received - received}))
    return code if code >= 0 else 128 - code


# ---- Outside.

def results_of(command, folder):
    """Where `sluice-bench reshard` writes its results; None for other programs. And the command
    that has it write them."""
    if command[1:2] != ["reshard"]:
        return None, command
    for at, word in enumerate(command[2:-1], 2):
        if word in ("-J", "--json"):
            return pathlib.Path(command[at + 1]), command
    return folder / "results.json", [*command, "--json", str(folder / "results.json")]


def main():
    args = parse()
    for number in two_hosts.ENDINGS:
        signal.signal(number, lambda number, _: sys.exit(128 + number))
    if args.inside:
        return run_inside(args)
    if os.getuid() != 0:
        fail(77, "making network namespaces takes root")
    subprocess.run([SCRIPTS / "packages.sh", "iproute2", "util-linux"], check=True)
    own_processes = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
    tried = subprocess.run([*own_processes, "true"], stderr=subprocess.PIPE, text=True, check=False)
    if tried.returncode != 0:  # in a chroot, say
        fail(77, f"this system does not let root make namespaces: {tried.stderr.strip()}")
    folder = pathlib.Path(tempfile.mkdtemp())
    job = None
    try:
        results, command = results_of(args.command, folder)
        with two_hosts.uninterrupted():
            job = subprocess.Popen(
                [*own_processes, sys.executable, __file__, "--inside", folder, "--ranks",
                 str(args.ranks), "--rate", args.rate, "--fabric", args.fabric, *command],
                preexec_fn=two_hosts.die_with_this())
        code = job.wait()
        if not (folder / "link").exists():
            return code
        out = report(args, results, json.loads((folder / "link").read_text()), code)
    finally:
        if job is not None:
            job.kill()  # its child, and all that this has started, dies with it
            job.wait()
        shutil.rmtree(folder, ignore_errors=True)
    show(out)
    if args.json:
        args.json.write_text(json.dumps(out, indent=1) + "\n", encoding="utf-8")
    return code


if __name__ == "__main__":
    sys.exit(main())
