"""docs/figures/python.md: the package for Python beside PyTorch's own ways, of python.json."""
from pages import heads
from pages.markdown import size, spread_of, table

PARTS = ("redistributions", "small", "start-up", "checkpoints")
OWN = {"sluice": "a bound transfer", "sluice-sync": "`sluice.sync`"}
OTHERS = {"redistribute": "`DTensor.redistribute`", "packed": "one packed batch",
          "packed-each": "a batch per block", "collective": "one collective"}
MEMORY = {"default": "as it comes", "kept": "kept, huge pages"}
TARGETS = {"columns": "columns", "replicas": "a copy on each rank"}
PROGRAMS = {"c++": "C++", "bound": "a bound transfer", "sync": "`sluice.sync`"}
LOADERS = {"sluice": "Sluice", "runai": "Run:ai model streamer", "safetensors": "safetensors"}
PLACES = {"cold": "storage", "warm": "page cache"}


def _part(results, name):
    return (results.get("python") or {}).get(name)


def _rounds(part):
    return f"{part['rounds']} rounds, medians (quartiles)."


def _milliseconds(entry):
    return spread_of({key: entry[key] / 1e3 for key in ("median", "q1", "q3")}, 1)


def redistributions(results):
    """What each way takes, and by how much the others take longer."""
    data = _part(results, "redistributions")
    if not data:
        return ""
    ways = {**OWN, **OTHERS}
    times = [[case["dtype"], TARGETS[case["to"]], MEMORY[case["memory"]],
              *(_milliseconds(case["time_us"][way]) for way in ways)] for case in data["cases"]]
    ratios = [[case["dtype"], TARGETS[case["to"]], MEMORY[case["memory"]], name,
               *(spread_of(case["ratio"][own][other])
                 for other in ("redistribute", "packed", "collective"))]
              for case in data["cases"] for own, name in OWN.items()]
    plans = sorted(case["plan_us"] / 1e3 for case in data["cases"])
    head = ["elements", "from rows to", "memory"]
    return (f"A square tensor of {data['size']} x {data['size']} on {data['processes']} processes; "
            f"PyTorch {data['torch']}; {_rounds(data)} Milliseconds:\n\n"
            f"{table([*head, *ways.values()], times, left=3)}\n\n"
            "Their time over Sluice's, round by round. Of the two packed ways it is the faster "
            "one's:\n\n" +
            table([*head, "Sluice's way", OTHERS["redistribute"], "packed `batch_isend_irecv`",
                   OTHERS["collective"]], ratios, left=4) +
            f"\n\nPlanning a bound transfer took {plans[0]:.1f} to {plans[-1]:.1f} ms, once. What "
            f"carries Sluice's bytes: `{data['report']}`. The first touch of a page takes "
            f"{spread_of(data['fault_us'])} us on this machine.")


def short_text(results):
    """Of a bound transfer from rows to columns, in the memory that suits the other way best."""
    data = _part(results, "redistributions")
    cases = [case for case in (data or {}).get("cases", ())
             if case["dtype"] == "f32" and case["to"] == "columns"]
    if not cases:
        return None
    redistribute, packed = (min(case["ratio"]["sluice"][other]["median"] for case in cases)
                            for other in ("redistribute", "packed"))
    return (f"**From Python.** Rows to columns: DTensor's `redistribute` over gloo takes "
            f"{redistribute:.0f} times as long, packed sends {packed:.1f} times.")


def small(results):
    """Microseconds of a sync in C++ and from Python, and what of it is `start`."""
    data = _part(results, "small")
    if not data:
        return ""
    rows = [[name, spread_of(data["sync_us"][way], 0),
             spread_of(data["more_us"][way], 0) if way in data["more_us"] else "",
             spread_of(data["start_us"][way], 1) if way in data["start_us"] else ""]
            for way, name in PROGRAMS.items()]
    return (f"{data['tensors']} tensors on {data['ranks']} processes; {_rounds(data)} "
            "Microseconds:\n\n" +
            table(["", "a sync", "more than in C++", "of it `start`"], rows) +
            "\n\n`start` of a bound transfer takes "
            f"{spread_of(data['start_more_us'], 1)} us more than in C++ there. With one tensor it "
            f"takes {spread_of(data['start_of_one_us'], 1)} us in all.")


def start_up(results):
    data = _part(results, "start-up")
    if not data:
        return ""
    text = (f"`import sluice` takes {spread_of(data['import_ms'], 1)} ms of a new interpreter "
            f"({data['import_ms']['n']} rounds, median and quartiles).")
    if "wheel_bytes" in data:
        text += f" The wheel has {data['wheel_bytes'] / 1e6:.2f} MB."
    return text


def checkpoints(results):
    """Loads of one file, and the settings that were tried before."""
    data = _part(results, "checkpoints")
    if not data:
        return ""
    rows = [[PLACES[row["case"]], f"{LOADERS[row['way']]} {row['version']}", row["setting"],
             f"{row['time_us']['median'] / 1e3:.0f}",
             f"{data['bytes'] / row['time_us']['median'] / 1e3:.2f}", spread_of(row["ratio"])]
            for row in data["rows"]]
    tried = [[PLACES[row["case"]], LOADERS[row["way"]], row["setting"],
              "refused" if "refused" in row else f"{row['time_us']['median'] / 1e3:.0f}"]
             for row in data["tried"]]
    loads = max((row["time_us"]["n"] for row in data["tried"] if "time_us" in row), default=0)
    return (f"{size(data['bytes'])} in one file, {data['tensors']} tensors; {_rounds(data)}\n\n" +
            table(["from", "way", "its setting", "ms", "GB/s", "time / Sluice's"], rows, left=3) +
            f"\n\nWhat was tried before, medians of {loads} loads:\n\n" +
            table(["from", "way", "setting", "ms"], tried, left=3))


def goals(results):
    """A row for each goal, and whether the median reaches it."""
    rows = [[goal["words"], _setting(goal), _limit(goal), _measured(goal),
             "met" if goal["reached"] else "**not met**"]
            for name in PARTS for goal in (_part(results, name) or {}).get("goals", ())]
    if not rows:
        return ""
    met = sum(row[-1] == "met" for row in rows)
    return (f"Goals met: {met} of {len(rows)}. Medians count, quartiles are beside them.\n\n" +
            table(["goal", "where", "limit", "measured", ""], rows, left=2))


def _setting(goal):
    """Of a redistribution, also the memory that suits the other way best."""
    return goal["setting"] + (f"; memory {MEMORY[goal['memory']]}" if "memory" in goal else "")


def _limit(goal):
    return (f"at least {goal['least']:g}" if "least" in goal
            else f"at most {goal['most']:,}")


def _measured(goal):
    found = goal["measured"]
    if found["n"] == 1:
        return f"{found['median']:,.0f}"
    return spread_of(found, 2 if "least" in goal else 1)


def where(results):
    """Machine, date and commit of each part; a warning where one is of a quick run."""
    groups, quick = {}, []
    for name in PARTS:
        part = _part(results, name)
        if not part:
            continue
        groups.setdefault((heads.machine_text(part["machine"]), part["date"], part["commit"]),
                          []).append(name)
        if part["quick"]:
            quick.append(name)
    lines = [f"* {', '.join(names)}: {machine}; {date}, commit `{commit}`"
             for (machine, date, commit), names in groups.items()]
    if quick:
        lines.append("* **Quick runs, which show that the programs work and no more: "
                     f"{', '.join(quick)}.**")
    return "\n".join(lines)
