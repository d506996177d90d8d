"""Sluice against the best of what MPI can do, in each of the 24 presets.

Every baseline of sluice-bench reshard runs in turns with Sluice, under Open MPI with CMA (one copy
by the kernel) and without it, with tensors in private memory (your own) and in shared memory (that
Sluice allocated). So a case has four turns. A way that cannot carry out a case has a reason in
place of a time. Bounds send no messages, and run with CMA alone.

In the results, `best` has for each case and memory: the way with the least median of all settings
and the ratio of its time over ours (the mean of both runs in that memory, as Sluice copies
directly); the same of ways in the same memory, over ours of the same runs; and that of the bound.
`summary` is of the cases' medians.
"""
import statistics

import presets
from presets import cases  # noqa: F401  that of this competitor, too
from rounds import MPIRUN, CannotRun, Failure, call, listed, spread

BASELINE = ""
MEMORIES = ("private", "shared")
WAYS = ["serial", "isend", "isend-packed", "alltoallw", "gather-broadcast"]
BOUNDS = ("bound", "memcpy-own")


def one_of_the_ways(text):
    if text not in WAYS:
        raise ValueError(text)
    return text


def options(parser):
    presets.options(parser)
    parser.add_argument("--ways", type=listed(one_of_the_ways), default=WAYS,
                        help="baselines, with commas between [" + ",".join(WAYS) + "]")


def build(args):
    version = call([MPIRUN[0], "--version"])
    if "Open MPI" not in version and "OpenRTE" not in version:
        raise CannotRun("this takes Open MPI")
    number = next((word for word in version.split() if word[0].isdigit()), "4")
    name, none = (("btl_vader_single_copy_mechanism", "none") if int(number.split(".")[0]) < 5 else
                  ("smsc", "^cma,knem,xpmem"))
    args.copies = {"CMA": ["--mca", name, "cma"], "no CMA": ["--mca", name, none]}


def turns(args, case):
    return [lambda memory=memory, copy=copy: turn(args, case, memory, copy)
            for memory in MEMORIES for copy in args.copies]


def turn(args, case, memory, copy):
    ways = [*args.ways, *(BOUNDS if copy == "CMA" else ())]
    [result] = presets.reshard(args, args.ranks, [
        *presets.flags(args, case), "--memory", memory, "--transport", "direct", "--baseline",
        ",".join(ways)], args.copies[copy])
    times = {"sluice": {"time_us": float(result["time_us"]["median"])}}
    for way, of in result["baselines"].items():
        times[way] = ({"time_us": float(of["time_us"])} if of else
                      {"time_us": None, "reason": result["baseline_reasons"].get(way)})
    return {f"{way}, {memory}, {copy}": of for way, of in times.items()}


def extra(_, found):
    best = [row(case["case"], memory, of_rounds) for case, of_rounds in found
            for memory in MEMORIES]
    return {"best": best, "summary": [
        {"memory": memory, **{key: spread(row[key]["median"] for row in best
                                          if row["memory"] == memory)
                              for key in ("ratio", "same_ratio", "of_bound")}}
        for memory in MEMORIES]}


def row(case, memory, of_rounds):
    times = {way: [one[way]["time_us"] for one in of_rounds] for way in of_rounds[0]}
    others = {way: of for way, of in times.items()
              if None not in of and way.split(",")[0] not in ("sluice", *BOUNDS)}
    if not others:
        raise Failure(f"{case}: none of the ways can carry it out")
    ours = [statistics.mean(both) for both in zip(*(
        of for way, of in times.items() if way.startswith(f"sluice, {memory},")))]
    here = {way: of for way, of in others.items() if f", {memory}," in way}
    best, same = (min(of, key=lambda way, of=of: statistics.median(of[way]))
                  for of in (others, here))
    own = times["sluice," + same.split(",", 1)[1]]  # of the same runs
    return {"case": case, "memory": memory, "best": best, "ratio": over(others[best], ours),
            "same": same, "same_ratio": over(here[same], own),
            "of_bound": over(times[f"bound, {memory}, CMA"], times[f"sluice, {memory}, CMA"])}


def over(theirs, ours):
    return spread(their / our for their, our in zip(theirs, ours))
