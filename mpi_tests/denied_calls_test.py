#!/usr/bin/env python3
"""What ranks say, and do, where a filter keeps them from calls that `direct` makes.

  denied_calls_test.py MPIRUN SLUICE_BENCH DENY_CALLS

Code 77: this system takes no filters.
"""
import functools
import json
import re
import subprocess
import sys

from bench_run import DeniedRun

COPIES = "process_vm_readv,process_vm_writev"
CASE = ["--shape", "512,512", "--src-mesh", "3", "--src-ranks", "0-2", "--src-placements", "S(1)",
        "--dst-mesh", "3", "--dst-ranks", "0-2", "--dst-placements", "S(0)"]


def check(mpirun, program, deny, calls, memory, said):
    """`said`: a part of each line about what is missing, in order; no other line is there."""
    bench = DeniedRun(mpirun, program, "reshard", deny, calls)
    code, output, results = bench.run(3, [*CASE, "--memory", memory, "--transport", "direct"])
    what = f"{calls}, {memory} memory"
    assert code == 0, f"{what}: code {code}\n{output}"
    assert results is not None, what
    # mpirun may put one in the middle of a line of the table.
    lines = re.findall(r"sluice: .*", output)
    assert len(lines) == len(said), f"{what}: {lines}\n{output}"
    for line, part in zip(sorted(lines), said):
        assert part in line, f"{what}: {line}"
    # The results say so, too.
    wires = results["wires"]
    assert [each["wire"] for each in wires] == ["direct"], f"{what}: {wires}"
    limited = "does not let rank 0, process" in wires[0]["why"]
    assert limited == (COPIES in calls), f"{what}: {wires}"
    print(f"{what}: {json.dumps(lines)}")


def main():
    mpirun, program, deny = sys.argv[1:]
    if subprocess.run([deny, COPIES, "/bin/true"], check=False).returncode == 77:
        return 77
    run = functools.partial(check, mpirun, program, deny)
    for memory in ["shared", "private"]:
        run(COPIES, memory, ["does not let rank 0, process"])
        run("pidfd_open", memory, ["rank 0 looks in /proc"])
    run(f"pidfd_open,{COPIES}", "shared", ["rank 0 looks in /proc", "does not let rank 0"])
    return 0


if __name__ == "__main__":
    sys.exit(main())
