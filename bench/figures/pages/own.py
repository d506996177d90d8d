"""A page of somebody's own runs of sluice-sim."""
import json
import sys

from pages import meshes
from pages.markdown import fill, image
from pages.results import by, simulated

MOST_LINES = 6  # in one plot


def write(paths, page):
    files = [json.loads(path.read_text(encoding="utf-8")) for path in paths]
    results = [r for data in files for r in simulated(data)]
    if not results:
        sys.exit("report.py: these files have no results")
    blocks = {"model": "Network models: " + ", ".join(sorted({data["model"] for data in files})) +
              "."}
    jobs = [(f"{family}, {ranks:,} ranks", group)
            for (family, ranks), group in by(results, "family", "ranks").items()]
    blocks |= _pictures(results, jobs, page.resolve().parent / "images")
    blocks["jobs"] = meshes.budget_table(jobs)
    text = page.read_text(encoding="utf-8") if page.exists() else _empty(blocks)
    for name, content in blocks.items():
        filled = fill(text, name, content)
        if filled is None:
            print(f"report.py: {page} has no place for '{name}'", file=sys.stderr)
        text = filled or text
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(text, encoding="utf-8")


def _pictures(results, jobs, images):
    from plots import meshes as drawn  # which takes matplotlib
    blocks = {}
    growing = [(family, group) for (family,), group in by(results, "family").items()
               if len({r["ranks"] for r in group}) > 1]
    if growing:
        drawn.draw_peaks(growing, images / "peaks.svg")
        blocks["peaks"] = image("peaks against mesh size", "peaks.svg")
    several = [(title, group) for title, group in jobs
               if sum(bool(r.get("ratio_to_no_budget")) for r in group) > 2]
    if several:
        drawn.draw_budgets(several[:MOST_LINES], images / "budgets.svg")
        blocks["budgets"] = image("time and peak against budget", "budgets.svg")
    return blocks


def _empty(blocks):
    return "# Simulated meshes\n\n" + "\n".join(f"<!-- {name} -->\n<!-- end {name} -->\n"
                                                for name in blocks)
