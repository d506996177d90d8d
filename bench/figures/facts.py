"""The facts about the machine and the programs that a figure needs to be read; none names it."""
import datetime
import json
import os
import pathlib
import platform
import re
import subprocess

REPOSITORY = pathlib.Path(__file__).resolve().parent.parent.parent


def machine(bench):
    return {**this_machine(), "sluice": _sluice(bench),
            "fio": _version(["fio", "--version"]), "curl": _version(["curl", "--version"]),
            "nginx": _version(["nginx", "-v"])}


def head(command, rounds):
    """What stands at the head of each file of results."""
    return {"machine": this_machine(), "date": datetime.date.today().isoformat(),
            "commit": _commit(), "command": command, "rounds": rounds}


def this_machine():
    return {"cpus": len(os.sched_getaffinity(0)), "cpu": _cpu_model(),
            "memory_gib": _memory_gib(), "kernel": platform.release()}


def _cpu_model():
    with open("/proc/cpuinfo", encoding="utf-8") as info:
        found = re.search(r"model name\s*: (.*)", info.read())
    return found.group(1) if found else platform.machine()


def _memory_gib():
    return round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / (1 << 30), 1)


def _commit():
    """Of the sources; `+` where they have changed since."""
    def git(*command):
        try:
            return subprocess.run(["git", "-C", str(REPOSITORY), *command], stdout=subprocess.PIPE,
                                  stderr=subprocess.DEVNULL, text=True, check=False).stdout.strip()
        except FileNotFoundError:
            return ""
    changed = git("status", "--porcelain", "--", "src", "include", "bench", "scripts")
    return (git("rev-parse", "--short", "HEAD") or "unknown") + ("+" if changed else "")


def _sluice(bench):
    """The smallest run says what it was built with."""
    command, file = bench.command("generator", items=1, item_bytes=4096)
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    results = json.loads(file.read_text(encoding="utf-8"))
    file.unlink()
    return f"{results['version']} ({results['built_with']}; {results['config']['mpi']})"


def _version(command):
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              check=True)
    except FileNotFoundError:
        return "not installed"
    return re.search(r"\d+(\.\d+)+", done.stdout).group(0)
