"""Rounds of sluice-bench reshard under mpirun, for the scripts that measure all presets.

A round runs each case once in each setting, one mpirun after the other. Every other round goes
backwards, so that nothing always runs after the same one. Elements are verified in every iteration:
a wrong one ends the script.
"""
import argparse
import datetime
import fnmatch
import json
import os
import platform
import re
import shlex
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# For the scripts that import this one: table, spread and verdict; make_models.
sys.path += [os.path.join(ROOT, "bench", folder) for folder in ("figures", "models")]
MPIRUN = os.path.join(ROOT, "scripts", "mpirun.sh")
TIMEOUT_S = 600
CANNOT_RUN_HERE = 77


class Failure(Exception):
    """A run that ended badly, or had a wrong element."""


def add_options(parser, out):
    parser.add_argument("--cases", default="*", metavar="LIST",
                        help="presets, as patterns of the shell, with commas between [all 24]")
    parser.add_argument("--shape", default="2048,2048", help="of each tensor [2048,2048]")
    parser.add_argument("--tensors", type=positive, default=2, help="of each case [2]")
    parser.add_argument("--ranks", type=positive, default=16, help="of mpirun [16]")
    parser.add_argument("--rounds", type=positive, default=5, help="[5]")
    parser.add_argument("--iters", type=positive, default=3,
                        help="timed iterations of a run; their median counts [3]")
    parser.add_argument("--minutes", type=float, default=0, metavar="M",
                        help="begin no run after so many minutes; a round that this cuts off does "
                             "not count for the cases that it has not reached [no limit]")
    parser.add_argument("--json", default=os.path.join(ROOT, out), metavar="FILE",
                        help=f"the results [{out} of the repository]")
    parser.add_argument("--sluice-bench", metavar="FILE",
                        default=os.path.join(ROOT, "build", "bin", "sluice-bench"),
                        help="the program [build/bin/sluice-bench]")


def positive(text):
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is below 1")
    return number


def chosen_cases(args):
    """The presets that match, in their order."""
    patterns = args.cases.split(",")
    listed = subprocess.run([args.sluice_bench, "reshard", "--list-presets"], check=True,
                            stdout=subprocess.PIPE, text=True).stdout
    names = [line.split()[0] for line in listed.splitlines()]
    for pattern in patterns:
        if not fnmatch.filter(names, pattern):
            print(f"There is no case {pattern}; there are: {' '.join(names)}", file=sys.stderr)
            sys.exit(2)
    return [name for name in names if any(fnmatch.fnmatch(name, p) for p in patterns)]


def mpi_version():
    """The first line of mpirun --version."""
    done = subprocess.run([MPIRUN, "--version"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, check=False)
    return done.stdout.splitlines()[0] if done.stdout else ""


def run_case(args, case, flags, mca=()):
    """The results of one mpirun, of a preset."""
    return run_reshard(args, args.ranks, ["--preset", case, "--shape", args.shape, "--tensors",
                                          str(args.tensors), *flags], mca)


def run_reshard(args, ranks, flags, mca=()):
    """The results of one mpirun."""
    with tempfile.TemporaryDirectory(prefix="bench-rounds-") as folder:
        file = os.path.join(folder, "results.json")
        command = [MPIRUN, "--oversubscribe", *mca, "-np", str(ranks), args.sluice_bench,
                   "reshard", "-n", str(args.iters), "--check", "all", "--timeout-s", "200",
                   *flags, "--json", file]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=TIMEOUT_S, check=False)
        if done.returncode != 0:
            raise Failure(f"{shlex.join(command)}\nended with {done.returncode}:\n"
                          f"{done.stdout[-3000:]}")
        with open(file, encoding="utf-8") as text:
            results = json.load(text)
    wrong = sum(result["wrong"] for result in results["results"])
    for result in results["results"]:
        wrong += sum(b["wrong"] for b in result.get("baselines", {}).values() if b)
    if wrong or results["errors"] or not all(r["checked"] for r in results["results"]):
        raise Failure(f"{shlex.join(command)}\n{wrong} wrong elements, {results['errors']}")
    return results["results"]


def measure(args, cases, settings, run):
    """{case: [{setting: what run(case, setting) returned}, one for each round]}."""
    began = time.monotonic()
    rounds = {case: [] for case in cases}
    for number in range(args.rounds):
        forward = number % 2 == 0
        for case in cases if forward else reversed(cases):
            whole = {}
            for setting in settings if forward else reversed(settings):
                if 0 < args.minutes * 60 <= time.monotonic() - began:
                    print(f"{args.minutes:g} minutes are over", file=sys.stderr)
                    return rounds
                whole[setting] = run(case, setting)
            rounds[case].append(whole)
        print(f"round {number + 1} of {args.rounds}: {(time.monotonic() - began) / 60:.1f} minutes",
              file=sys.stderr, flush=True)
    return rounds


def quantile(ordered, share):
    """Between the two nearest, as far from each as it should be."""
    at = share * (len(ordered) - 1)
    low = int(at)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (at - low)


def quartiles(values):
    """Of one value for each round."""
    ordered = sorted(values)
    return {"min": ordered[0], "p25": quantile(ordered, 0.25), "median": quantile(ordered, 0.5),
            "p75": quantile(ordered, 0.75), "max": ordered[-1], "rounds": list(values)}


def median(values):
    return quantile(sorted(values), 0.5)


def of_file(path, pattern):
    try:
        with open(path, encoding="utf-8") as file:
            found = re.search(pattern, file.read(), re.MULTILINE)
    except OSError:
        return None
    return found.group(1).strip().strip('"') if found else None


def git(*words):
    try:
        done = subprocess.run(["git", "-C", ROOT, *words], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True, check=False)
    except FileNotFoundError:  # a copy of the sources on a machine without git
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def words_of_command():
    """As they were typed, but for where this machine has the program."""
    words = sys.argv[1:]
    if "--sluice-bench" in words:
        at = words.index("--sluice-bench")
        del words[at:at + 2]
    return words


def head(args, kind):
    """What a reader has to know about the figures that follow."""
    memory_kib = of_file("/proc/meminfo", r"^MemTotal:\s*(\d+)")
    return {
        "version": 1,
        "kind": kind,
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d"),
        "machine": {"cpu": of_file("/proc/cpuinfo", r"^model name\s*:(.*)$"),
                    "cores": len(os.sched_getaffinity(0)),
                    "memory_bytes": int(memory_kib) * 1024 if memory_kib else None,
                    "kernel": platform.release(),
                    "system": of_file("/etc/os-release", r"^PRETTY_NAME=(.*)$")},
        "commit": git("rev-parse", "HEAD"),
        "changed": bool(git("status", "--porcelain", "--untracked-files=no")),
        "command": shlex.join(["scripts/" + kind.replace("-", "_") + ".sh", *words_of_command()]),
        "mpi": mpi_version(),
        "ranks": args.ranks,
        "shape": [int(size) for size in args.shape.split(",")],
        "tensors": args.tensors,
        "rounds": args.rounds,
        "iters": args.iters,
    }


def write(path, results):
    folder = os.path.dirname(os.path.abspath(path))
    os.makedirs(folder, exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        json.dump(results, file, indent=1)
        file.write("\n")


def main_of(main):
    """Ends the script with what `main` returns, or says what went wrong and ends it with 1."""
    try:
        sys.exit(main())
    except (Failure, subprocess.TimeoutExpired, subprocess.CalledProcessError, OSError) as error:
        print(f"{os.path.basename(sys.argv[0])}: {error}", file=sys.stderr)
        sys.exit(1)
