"""Bandwidth against size between two ranks and two others, rows to columns: squares.json.

Square f32 tensors, one of them and 25. A line per transport and per way: over the node's memory and
over TCP. More than BYTES_MAX in all is left out: 25 tensors of 8192 x 8192 take 6 GiB at each end,
and what packs them as much again.
"""
COMMAND = ("sluice-bench reshard --src 2:S(0) --dst 2@2-3:S(1) "
           "--baseline isend,isend-packed,serial,alltoallw")
SIDES = (512, 1024, 2048, 4096, 8192, 16384)
TENSORS = (1, 25)
BYTES_MAX = 2 << 30
# Of Sluice, and how MPI moves the bytes.
WIRES = {"memory": (("--compare-transports", "direct,mpi"), {}),
         "tcp": (("--transport", "mpi"),
                 {"OMPI_MCA_btl": "self,tcp"})}
RANKS = 4


def shapes(quick):
    return [(side, tensors) for tensors in TENSORS for side in SIDES[:2] if quick] or \
        [(side, tensors) for tensors in TENSORS for side in SIDES
         if 4 * side * side * tensors <= BYTES_MAX]


def measure(job):
    rounds = job.rounds(5)
    flags = COMMAND.split()[2:]
    results = []
    for side, tensors in shapes(job.quick):
        for wire, (transports, variables) in WIRES.items():
            found = job.reshard(RANKS, *flags, *transports, "--shape", f"{side},{side}",
                                "--tensors", tensors, "-n", rounds, variables=variables)
            results += [{"wire": wire, "side": side, **result} for result in found]
    return {"rounds": rounds, "bytes_max": BYTES_MAX,
            "command": f"{COMMAND} --shape N,N --tensors 1|25 --compare-transports direct,mpi, "
                       f"{RANKS} ranks; the same with --transport mpi over TCP (btl self,tcp)",
            "results": results}
