#!/usr/bin/env python3
"""Sessions over SimGrid's simulated MPI: they come to their end, and control stays few messages.

usage: simulated_messages_test.py SMPI.SH SLUICE-SMPI-MESSAGES

Time and order are the simulation's, so counts are the same in every run.
"""
import json
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts/nodes"))
import job_limit  # noqa: E402  (of scripts/nodes)

STAGES = ["MakeMpiFabric", "Create", "Compile", "first run", "second run", "cancelled run", "end"]


def count(smpi, program, ranks):
    done = job_limit.run([smpi, "-n", str(ranks), "--messages", program], 900,
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"{ranks} ranks: exit {done.returncode}\n{done.stdout}{done.stderr}")
    result = json.loads(done.stdout)
    assert result["ranks"] == ranks, result
    assert [stage["stage"] for stage in result["stages"]] == STAGES, result
    return {stage["stage"]: stage for stage in result["stages"]}


def main():
    smpi, program = sys.argv[1:]
    few, many = 9, 64
    of_few = count(smpi, program, few)
    of_many = count(smpi, program, many)
    for stage in STAGES:
        here = of_many[stage]
        # One message to each other rank instead would be eight times as many.
        limit = 2 * of_few[stage]["control_max"] + 2
        assert here["control_max"] <= limit, (stage, here, of_few[stage])
        runs = stage in ("first run", "second run")
        assert here["payload_max"] == 1 if runs else here["payload_max"] <= 1, (stage, here)
    print("passed")


if __name__ == "__main__":
    main()
