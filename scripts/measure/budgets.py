"""What a budget holds down, and what it costs: without one and with 8 buckets.

Real processes under mpirun. In each run Sluice takes turns without a budget and with each of
--budgets. The cases are the 24 presets; with --models they are models in place of them. MODEL is
one of share/sluice/models, SYSTEM one of bench/systems, which says how many ranks it takes. SCALE
divides the model's dimensions, LAYERS keeps its first layers. Models take turns without joining,
too: each chunk is a bucket of its own (`apart`). All ratios are to the time without a budget,
joined.

Columns: `buckets` of all ranks; the most `peak_buckets`, `peak_bytes` of staging and `peak_ops`
(messages and copies) at once on the busiest rank; their limits (0: none); `growth_bytes` of
resident memory on the rank where it grew most (null where the kernel does not say), and
`allowed_bytes`.
"""
import json
import re
import sys

import presets
from rounds import ROOT, listed, positive

sys.path.append(str(ROOT / "bench/models"))
import make_models  # noqa: E402  after the folder is known

BASELINE = "no budget"


class Model:
    """A model on the ranks of a system."""

    def __init__(self, text):
        parts = text.split(":")
        if not 2 <= len(parts) <= 4 or parts[0] not in make_models.MODELS:
            raise ValueError(f"{text} is not MODEL:SYSTEM[:SCALE[:LAYERS]]")
        self.name = "/".join(parts[:2])
        scale, layers = [positive(part) for part in parts[2:]] + [1, 0][len(parts) - 2:]
        try:
            sides = json.loads(presets.system(parts[1]).read_text(encoding="utf-8"))
        except OSError as error:
            raise ValueError(str(error)) from error
        self.ranks = sum(sides[side]["num_gpus"] for side in ("train", "generation"))
        self.columns = {"case": self.name, "ranks": self.ranks, "scale": scale, "layers": layers}
        self.flags = ["--model", parts[0], "--system", parts[1], "--scale", scale, "--layers",
                      layers, "--compare-coalesce", "on,off"]


def options(parser):
    presets.options(parser)
    parser.add_argument("--models", type=listed(Model), default=[], metavar="LIST",
                        help="MODEL:SYSTEM[:SCALE[:LAYERS]], with commas between, in place of "
                             "presets")
    parser.add_argument("--budgets", type=listed(positive), default=[8],
                        help="in buckets, with commas between [8]")
    parser.add_argument("--memory", default="private", choices=("private", "shared"),
                        help="that tensors are in [private]")


def build(_):
    pass


def cases(args):
    return [model.columns for model in args.models] or presets.cases(args)


def turns(args, case, ranks=None, **_):
    of_case = (presets.flags(args, case) if ranks is None else
               next(model.flags for model in args.models if model.name == case))
    return [lambda: times(presets.reshard(args, ranks or args.ranks, [
        *of_case, "--memory", args.memory, "--compare-budgets",
        ",".join(map(str, [0, *args.budgets]))]))]


def times(results):
    found = {}
    for result in results:
        budget = int(re.search(r"/budget-(\d+)", result["case"])[1])
        way = f"{budget} buckets" if budget else BASELINE
        found[way if result["coalesce"] else f"apart, {way}"] = {
            "tensor_bytes": result["tensor_bytes"], "payload_bytes": result["payload_bytes"],
            "buckets": result["buckets"],
            **{f"peak_{key}": result["peak"][key] for key in ("buckets", "bytes", "ops")},
            **{f"limit_{key}": result["limit"][key] for key in ("buckets", "bytes")},
            **{key: result["memory"][key] for key in ("growth_bytes", "allowed_bytes")},
            "time_us": float(result["time_us"]["median"])}
    return found
