"""The process's peak of resident memory, compared to the budget and what may come on top."""
from nginx import Nginx
from runs import MIB
from spread import summarize

BUDGETS = (16, 64, 256)  # MiB
SMALLEST = MIB
ROUNDS = 3
ON_TOP = 16 * MIB
PER_REQUEST = 4096


def measure(setup):
    folder = setup.folder()
    runs = []
    with Nginx(folder) as nginx:
        sources = {"file": f"file:{folder}", "http": nginx.url}
        for number, name in setup.turns("memory", setup.rounds(ROUNDS), sources):
            before = _before(setup, sources[name])
            for budget in setup.some(BUDGETS):
                runs.append({"source": name, "round": number, "before_bytes": before,
                             **_run(setup, sources[name], budget * MIB, before)})
    return {"parameters": {"item_bytes": MIB, "counted": "VmHWM", "on_top_bytes": ON_TOP,
                           "per_request_bytes": PER_REQUEST},
            "runs": runs,
            "summary": summarize(runs, ("source", "budget_bytes"),
                                 ("above_bytes", "allowed_bytes", "ratio", "over_ledger_bytes",
                                  "ledger_ratio"))}


def _before(setup, source):
    """What the process has without its ledger: a run with the smallest budget, less that."""
    run = setup.bench.stream(source, watch_memory=True, stop_items=1, budget_bytes=SMALLEST)
    return run["peak_process_bytes"] - run["peak"]["bytes"] - run["device_bytes"]


def _run(setup, source, budget, before):
    run = setup.bench.stream(source, watch_memory=True, budget_bytes=budget,
                             epochs=setup.count(4, 1))
    allowed = budget + run["device_bytes"] + ON_TOP + PER_REQUEST * run["peak"]["slots"]
    above = run["peak_process_bytes"] - before
    return {"budget_bytes": budget, "peak_process_bytes": run["peak_process_bytes"],
            "above_bytes": above, "allowed_bytes": allowed, "ratio": above / allowed,
            "over_ledger_bytes": above - run["peak"]["bytes"] - run["device_bytes"],
            "ledger_ratio": run["peak"]["bytes"] / run["limit"]["bytes"],
            "requests_at_once": run["peak"]["slots"], "device_bytes": run["device_bytes"]}
