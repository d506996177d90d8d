#!/usr/bin/env python3
"""The programs of bench/peers move the right bytes, and would say so if they did not.

  peers_test.py MPIRUN MPI_PEER MEMCPY_PEER
"""
import json
import subprocess
import sys

from bench_run import job_limit

ITERATIONS = 2


def run(command, **words):
    words = dict(rows=120, columns=360, element=2, warmup=1, iters=ITERATIONS, **words)
    done = job_limit.run(command + [f"{name}={value}" for name, value in words.items()],
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.returncode, done.stdout


def check(command, **words):
    code, output = run(command, **words)
    assert code == 0, (command, words, output)
    result = json.loads(output.splitlines()[-1])
    assert result["wrong"] == 0 and len(result["times_us"]) == ITERATIONS, (words, result)
    assert min(result["times_us"]) > 0, result


def over_mpi(mpirun, mpi_peer, _):
    for ranks in (1, 2, 5):
        for kind in ("columns-to-rows", "rows-to-columns"):
            for way in ("isend", "alltoallw", "gather-broadcast"):
                check([mpirun, "--oversubscribe", "-np", str(ranks), mpi_peer], kind=kind, way=way)
    two = [mpirun, "--oversubscribe", "-np", "2", mpi_peer]
    for way in ("isend", "alltoallw", "gather-broadcast"):
        check(two, kind="contiguous", way=way)
    for message, window in ((86400, 1), (1000, 4), (1, 3)):
        check(two, kind="contiguous", way="window", message=2 * message, window=window)


def by_memcpy(_mpirun, _mpi_peer, memcpy_peer):
    for threads in (1, 2, 3):
        check([memcpy_peer], kind="contiguous", ranks=2, threads=threads)
        for kind in ("columns-to-rows", "rows-to-columns"):
            check([memcpy_peer], kind=kind, ranks=6, threads=threads)


def what_cannot_be_done_is_refused(mpirun, mpi_peer, memcpy_peer):
    for words in ({"kind": "diagonal"}, {"kind": "contiguous", "ranks": 3},
                  {"kind": "rows-to-columns", "ranks": 7}):
        code, output = run([memcpy_peer], threads=1, **{"ranks": 2, **words})
        assert code == 1 and "peer: " in output, (words, output)
    code, output = run([mpirun, "-np", "1", mpi_peer], kind="rows-to-columns", way="carrier-pigeon")
    assert code != 0 and "no way carrier-pigeon" in output, output


def main():
    for test in (over_mpi, by_memcpy, what_cannot_be_done_is_refused):
        test(*sys.argv[1:4])
        print(f"ok {test.__name__}", flush=True)


if __name__ == "__main__":
    main()
