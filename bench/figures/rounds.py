"""Rounds of measurements: programs that take turns, and the rows of what came of them.

A turn gives {way: {key: value}}. A row has the spread of a number with a fraction over the rounds,
and the greatest of a whole number. Words are those of the first round, and tuples are left out.
"""
import argparse
import datetime
import json
import os
import pathlib
import platform
import re
import shlex
import socket
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
MPIRUN = [ROOT / "scripts/mpirun.sh", "--oversubscribe", "-np"]
SPAWN = [ROOT / "scripts/spawn.sh", "-n"]
TIMEOUT_S = 600
CANNOT_RUN_HERE = 77


class Failure(Exception):
    """A run that ended badly, or had a wrong element."""


class CannotRun(Exception):
    """This machine does not allow it."""


def call(command, timeout=TIMEOUT_S, variables=None, **more):
    """The program's standard output. It must end well. `variables`: more of the environment."""
    command = [str(part) for part in command]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          timeout=timeout, check=False, env={**os.environ, **(variables or {})},
                          **more)
    if done.returncode != 0:
        kind = CannotRun if done.returncode == CANNOT_RUN_HERE else Failure
        raise kind(f"{shlex.join(command)}\nended with {done.returncode}:\n"
                   f"{done.stdout[-3000:]}{done.stderr[-3000:]}")
    return done.stdout


def results_of(command, arguments=(), **more):
    """The JSON that the program writes. `arguments` come after --json FILE. No element is wrong."""
    with tempfile.TemporaryDirectory(prefix="measure-") as folder:
        file = pathlib.Path(folder, "results.json")
        call([*command, "--json", file, *arguments], **more)
        found = json.loads(file.read_text(encoding="utf-8"))
    results = found["results"] if isinstance(found, dict) and "results" in found else []
    for result in results if isinstance(results, list) else []:
        others = [way for way in (result.get("baselines") or {}).values() if way]
        if any(one.get("wrong") for one in (result, *others)):
            raise Failure(f"{command}: wrong elements: {result}")
    if isinstance(found, dict) and found.get("errors"):
        raise Failure(f"{command}: {found['errors']}")
    return found


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def say(text):
    print(text, file=sys.stderr, flush=True)


def take_turns(rounds, cases, turns_of, minutes=0):
    """[(case, [what its turns gave, one for each round])]. A case is a dict of columns, and
    `turns_of(**case)` lists calls. Every other round goes backwards, so that nothing always runs
    after the same one. No turn begins after so many minutes (0: no limit). A round that this cuts
    off does not count for the cases that it has not finished."""
    began = time.monotonic()
    found = [(case, []) for case in cases]
    for number in range(rounds):
        step = 1 if number % 2 == 0 else -1
        for case, of_rounds in found[::step]:
            whole = {}
            for turn in list(turns_of(**case))[::step]:
                if 0 < minutes * 60 <= time.monotonic() - began:
                    say(f"{minutes:g} minutes are over")
                    return whole_ones(found)
                whole.update(turn())
            of_rounds.append(whole)
        say(f"round {number + 1} of {rounds}: {(time.monotonic() - began) / 60:.1f} minutes")
    return whole_ones(found)


def whole_ones(found):
    found = [(case, of_rounds) for case, of_rounds in found if of_rounds]
    if not found:
        raise Failure("no case has a whole round: give more --minutes, or fewer --cases")
    return found


def spread(values):
    """Of one value for each round."""
    values = list(values)
    q1, median, q3 = (values * 3 if len(values) == 1 else
                      statistics.quantiles(values, n=4, method="inclusive"))
    return {"median": median, "q1": q1, "q3": q3, "min": min(values), "max": max(values),
            "rounds": values}


def column(values):
    if any(value is None for value in values):
        return None
    if any(isinstance(value, float) for value in values):
        return spread(values)
    return max(values) if isinstance(values[0], int) else values[0]


def rows_of(found, baseline="", key="time_us"):
    """A row for each case and way. `ratio` is of `key`, over that of the way `baseline` (or of
    what it names for the way) in the same round."""
    rows = []
    for case, of_rounds in found:
        ways = dict.fromkeys(way for one in of_rounds for way in one)
        for way in sorted(ways, key=list(of_rounds[0]).index):
            own = [one[way] for one in of_rounds]
            row = {**case, "way": way, "of_rounds": len(own)}
            row.update({name: column([one[name] for one in own])
                        for name, value in own[0].items() if not isinstance(value, tuple)})
            base = baseline(way) if callable(baseline) else baseline
            if base in of_rounds[0] and own[0].get(key) is not None:
                row["ratio"] = spread(one[way][key] / one[base][key] for one in of_rounds)
            rows.append(row)
    return rows


def of_file(path, pattern):
    try:
        found = re.search(pattern, pathlib.Path(path).read_text(encoding="utf-8"), re.MULTILINE)
    except OSError:
        return None
    return found.group(1).strip().strip('"') if found else None


def git(*words):
    try:
        return subprocess.run(["git", "-C", str(ROOT), *words], stdout=subprocess.PIPE, check=False,
                              stderr=subprocess.DEVNULL, text=True).stdout.strip()
    except FileNotFoundError:  # a copy of the sources on a machine without git
        return ""


def head(command, rounds):
    """What stands at the head of each file of results. The commit has a `+` where sources have
    changed since."""
    memory_kib = of_file("/proc/meminfo", r"^MemTotal:\s*(\d+)")
    changed = git("status", "--porcelain", "--", "src", "include", "bench", "scripts", "python")
    return {"machine": {"cpu": of_file("/proc/cpuinfo", r"^model name\s*:(.*)$"),
                        "cores": len(os.sched_getaffinity(0)),
                        "memory_gib": memory_kib and round(int(memory_kib) / (1 << 20), 1),
                        "kernel": platform.release(),
                        "system": of_file("/etc/os-release", r"^PRETTY_NAME=(.*)$")},
            "date": datetime.date.today().isoformat(),
            "commit": (git("rev-parse", "--short", "HEAD") or "unknown") + "+" * bool(changed),
            "command": command, "rounds": rounds}


def write(path, results):
    """No reader finds half a file."""
    path = pathlib.Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(path.name + ".draft")
    draft.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    os.replace(draft, path)


def positive(text):
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is below 1")
    return number


def size_of(text):
    found = re.fullmatch(r"(\d+)([KMG]?)", text)
    if not found or int(found[1]) < 1:
        raise argparse.ArgumentTypeError(f"{text} is no size, such as 64M or 1G")
    return int(found[1]) << {"": 0, "K": 10, "M": 20, "G": 30}[found[2]]


def listed(kind):
    """A list with commas between, each once. `kind` reads one of it."""
    return lambda text: list(dict.fromkeys(kind(word) for word in text.split(",")))


def into_page_cache(files):
    for path in files:
        with open(path, "rb", buffering=0) as file:
            block = bytearray(1 << 22)
            while file.readinto(block):
                pass


def out_of_page_cache(files):
    """Advice alone."""
    for path in files:
        with open(path, "rb") as file:
            os.fdatasync(file.fileno())  # pages that are to be written stay
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def main_of(main):
    """Ends the script with what `main` returns, or says what went wrong."""
    name = os.path.basename(sys.argv[0])
    try:
        sys.exit(main())
    except CannotRun as reason:
        print(f"{name}: {reason}", file=sys.stderr)
        sys.exit(CANNOT_RUN_HERE)
    except (Failure, subprocess.SubprocessError, OSError) as error:
        print(f"{name}: {error}", file=sys.stderr)
        sys.exit(1)
