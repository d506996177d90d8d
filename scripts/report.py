#!/usr/bin/env python3
"""Turns the JSON of sluice-sim into plots and Markdown tables.

usage: report.py [--results FOLDER] [--page FILE]      the tables and plots of docs/large-meshes.md
       report.py --json FILE... --page FILE            the same for runs of your own

In a page, what stands between <!-- NAME --> and <!-- end NAME --> is replaced; a page that does not
exist is written whole. Plots go to the folder images beside the page. Takes python3-matplotlib.
"""
import argparse
import json
import os
import re
import sys

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot as plt  # noqa: E402
from matplotlib.ticker import FuncFormatter, NullFormatter  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# Okabe and Ito's colours, which people with any colour vision tell apart.
COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000"]
MIB = 1 << 20
MODELS = [("deepseek-v3", "DeepSeek-V3, 128 (pp8 ep16) to 128 (tp8 dp16)"),
          ("qwen3-235b", "Qwen3-235B, 64 (pp4 tp4 ep8) to 64 (tp8 ep16)"),
          ("llama-3-70b", "Llama-3-70B, FSDP 512 to 64 (tp8 dp8)"),
          ("65536-ranks", "Llama-3-70B, one layer, 32,768 to 32,768")]


def load(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def results_of(path):
    return [r for r in load(path)["results"] if not r["stalled"]]


def budget_name(budget):
    return "none" if budget == 0 else str(budget)


def table(header, rows):
    lines = ["| " + " | ".join(header) + " |",
             "|" + "|".join("---" if i == 0 else "---:" for i in range(len(header))) + "|"]
    return "\n".join(lines + ["| " + " | ".join(str(c) for c in row) + " |" for row in rows])


def by(results, *keys):
    groups = {}
    for r in results:
        groups.setdefault(tuple(r[k] for k in keys), []).append(r)
    return groups


# Plots.

def axes(title, xlabel, ylabel, columns=1):
    figure, all_axes = plt.subplots(1, columns, figsize=(4.6 * columns + 0.6, 3.7),
                                    constrained_layout=True, squeeze=False)
    figure.suptitle(title, fontsize=11, x=0.01, ha="left", weight="bold")
    for ax in all_axes[0]:
        ax.set_xlabel(xlabel)
        ax.set_ylabel(ylabel)
        ax.spines[["top", "right"]].set_visible(False)
        ax.grid(True, which="major", color="#dddddd", linewidth=0.7)
        ax.set_axisbelow(True)
    return figure, list(all_axes[0])


def log2_axis(axis, ticks):
    axis.set_ticks(ticks)
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axis.set_minor_formatter(NullFormatter())


def save(figure, folder, name):
    os.makedirs(folder, exist_ok=True)
    # Without what would differ from run to run: the date and the library's version.
    figure.savefig(os.path.join(folder, name), dpi=140, metadata={"Software": None})
    plt.close(figure)


def label_end(ax, x, y, text, colour):
    ax.annotate(text, (x, y), textcoords="offset points", xytext=(2, 8), ha="right", color=colour,
                fontsize=9)


def plot_peaks(series, folder, name):
    """`series`: (title, results) of meshes that grow."""
    figure, all_axes = axes("Most buckets at once on any rank", "ranks", "buckets held",
                            len(series))
    for ax, (title, results) in zip(all_axes, series):
        ax.set_title(title, fontsize=10, loc="left")
        ax.set_xscale("log", base=2)
        ax.set_yscale("log", base=2)
        for i, ((budget,), group) in enumerate(sorted(by(results, "budget").items())):
            xs = [r["ranks"] for r in group]
            ys = [r["peak"]["max"] for r in group]
            colour = COLOURS[i % len(COLOURS)]
            ax.plot(xs, ys, marker="o", markersize=4, color=colour, linewidth=1.8)
            label_end(ax, xs[-1], ys[-1], "no budget" if budget == 0 else f"budget {budget}",
                      colour)
        log2_axis(ax.xaxis, sorted({r["ranks"] for r in results}))
        peaks = [r["peak"]["max"] for r in results]
        ticks = [2 ** e for e in range(0, 24, 2) if 2 ** e <= 4 * max(peaks)]
        log2_axis(ax.yaxis, ticks)
        ax.set_ylim(bottom=min(peaks) / 2, top=3 * max(peaks))
        ax.tick_params(axis="x", labelsize=8, rotation=30)
    save(figure, folder, name)


def plot_times(series, folder, name):
    """`series`: (title, results of one job at several budgets)."""
    figure, (ax,) = axes("What a budget costs", "budget (buckets of a rank)",
                         "time / time without a budget")
    ax.set_xscale("log", base=2)
    ticks = set()
    for i, (title, results) in enumerate(series):
        points = sorted((r["budget"], r["ratio_to_no_budget"]) for r in results
                        if r["budget"] > 0 and r.get("ratio_to_no_budget"))
        if not points:
            continue
        ticks |= {budget for budget, _ in points}
        ax.plot(*zip(*points), marker="o", markersize=4, color=COLOURS[i % len(COLOURS)],
                linewidth=1.8, label=title)
    ax.axhline(1, color="#666666", linewidth=1, linestyle=(0, (4, 3)))
    log2_axis(ax.xaxis, sorted(ticks))
    ax.set_ylim(bottom=0)
    ax.legend(fontsize=8, frameon=False)
    figure.set_size_inches(7.4, 4.0)
    save(figure, folder, name)


# Tables.

def growth_table(results):
    rows = []
    budgets = sorted({r["budget"] for r in results})
    header = ["ranks"]
    for budget in budgets:
        name = "no budget" if budget == 0 else f"budget {budget}"
        header += [f"peak, {name}", "bytes", "time / link bound"]
    for (ranks,), group in sorted(by(results, "ranks").items()):
        row = [f"{ranks:,}"]
        for budget in budgets:
            r = next((r for r in group if r["budget"] == budget), None)
            row += ["-"] * 3 if r is None else [f"{r['peak']['max']:,}", mib(r),
                                                f"{r['ratio_to_link_bound']:.3f}"]
        rows.append(row)
    return table(header, rows)


def mib(result):
    return f"{result['peak']['bytes_max'] / MIB:,.0f} MiB"


def budget_table(jobs):
    rows = []
    for title, results in jobs:
        for r in results:
            ratio = r.get("ratio_to_no_budget")
            rows.append([title, budget_name(r["budget"]), f"{r['peak']['max']:,}",
                         f"{r['peak']['median']:,.0f}", mib(r), f"{r['channels_max']:,}",
                         f"{r['makespan_us'] / 1e3:,.1f}", f"{r['ratio_to_link_bound']:.2f}",
                         f"{ratio:.2f}" if ratio else "-"])
            title = ""
    return table(["job", "budget", "peak", "median rank", "bytes", "channels", "ms",
                  "/ link bound", "/ no budget"], rows)


def family_table(named):
    rows = []
    for title, results in named:
        for (ranks,), group in sorted(by(results, "ranks").items()):
            times = {r["budget"]: r["makespan_us"] / 1e3 for r in group}
            rows.append([title, f"{ranks:,}"] + [f"{times[b]:,.1f}" if b in times else "-"
                                                 for b in sorted({r["budget"] for r in results})])
            title = ""
    budgets = sorted({r["budget"] for _, results in named for r in results})
    return table(["ms", "ranks"] + ["no budget" if b == 0 else f"budget {b}" for b in budgets],
                 rows)


def planning_table(named):
    rows = []
    for title, results in named:
        for (ranks,), group in sorted(by(results, "ranks").items()):
            if "costs" not in group[0]:
                continue
            costs = group[0]["costs"]
            distinct = costs["distinct_plans"]
            rows.append([title, f"{ranks:,}", f"{group[0]['channels_max']:,}", f"{distinct:,}",
                         f"{costs['plan_seconds']:.3f}",
                         f"{1e3 * costs['plan_seconds'] / distinct:.2f}",
                         f"{costs['plan_bytes_per_rank'] * ranks / distinct / 1024:,.1f}"])
            title = ""
    return table(["family", "ranks", "channels", "plans made", "s for all", "ms each",
                  "KiB each"], rows)


def check_table(rows):
    cells = []
    for row in rows:
        sim, smpi, real = row["sim"], row["smpi"], row.get("mpirun")
        cells.append([row["case"], row["ranks"], budget_name(row["budget"]),
                      f"{sim['buckets']} / {sim['ops']}", f"{smpi['buckets']} / {smpi['ops']}",
                      f"{real['buckets']} / {real['ops']}" if real else "",
                      f"{sim['us']:,.1f}", f"{smpi['us']:,.1f}", f"{sim['us'] / smpi['us']:.3f}"])
    return table(["case", "ranks", "budget", "sluice-sim", "SMPI", "mpirun", "sluice-sim, us",
                  "SMPI, us", "ratio"], cells)


# Pages.

def fill(page, blocks):
    """Puts `blocks` into the page; writes it whole where there is none."""
    if os.path.exists(page):
        with open(page, encoding="utf-8") as file:
            text = file.read()
    else:
        text = "# Simulated meshes\n\n" + "\n".join(
            f"<!-- {name} -->\n<!-- end {name} -->\n" for name in blocks)
    for name, content in blocks.items():
        pattern = re.compile(rf"(<!-- {name} -->\n).*?(<!-- end {name} -->)", re.DOTALL)
        if not pattern.search(text):
            print(f"report.py: {page} has no place for '{name}'", file=sys.stderr)
            continue
        text = pattern.sub(lambda m, c=content: m.group(1) + "\n" + c + "\n\n" + m.group(2), text)
    with open(page, "w", encoding="utf-8") as file:
        file.write(text)


def image(text, name):
    return f"![{text}](images/{name})"


def standard_blocks(folder, images):
    """What docs/large-meshes.md has, as far as there are results for it."""
    def have(name):
        return os.path.exists(os.path.join(folder, name + ".json"))

    def of(name):
        more = results_of(os.path.join(folder, name + "-65536.json")) if have(
            name + "-65536") else []
        return results_of(os.path.join(folder, name + ".json")) + more

    blocks = {}
    if have("all-to-all") and have("peers"):
        plot_peaks([("all to all", of("all-to-all")), ("each to 256 others", of("peers"))],
                   images, "peaks.png")
        blocks["peaks"] = image("peaks against mesh size", "peaks.png") + "\n\n" + growth_table(
            of("all-to-all")) + "\n\n" + growth_table(of("peers"))
    if have("small-buckets"):
        blocks["small buckets"] = growth_table(of("small-buckets"))
    jobs = [(title, of(name)) for name, title in MODELS if have(name)]
    if jobs:
        plot_times(jobs, images, "budgets.png")
        blocks["models"] = image("time against budget", "budgets.png") + "\n\n" + budget_table(jobs)
    families = [(name, of(name)) for name in ("fsdp-tp", "pp-ep-tp-dp") if have(name)]
    if families:
        blocks["families"] = family_table(families)
        alike = [(name, of(name)) for name in ("all-to-all", "peers", "65536-ranks") if have(name)]
        blocks["planning"] = planning_table(families + alike)
    if have("check"):
        blocks["check"] = check_table(load(os.path.join(folder, "check.json"))["rows"])
    return blocks


def own_blocks(paths, images):
    results = [r for path in paths for r in results_of(path)]
    if not results:
        sys.exit("report.py: these files have no results")
    models = sorted({load(path)["model"] for path in paths})
    blocks = {"model": "Network models: " + ", ".join(models) + "."}
    jobs = [(f"{family}, {ranks:,} ranks", group)
            for (family, ranks), group in by(results, "family", "ranks").items()]
    growing = [(family, group) for (family,), group in by(results, "family").items()
               if len({r["ranks"] for r in group}) > 1]
    if growing:
        plot_peaks(growing, images, "peaks.png")
        blocks["peaks"] = image("peaks against mesh size", "peaks.png")
    if any(len({r["budget"] for r in group}) > 2 for _, group in jobs):
        plot_times(jobs[:len(COLOURS)], images, "budgets.png")
        blocks["budgets"] = image("time against budget", "budgets.png")
    blocks["jobs"] = budget_table(jobs)
    return blocks


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", default=os.path.join(ROOT, "bench/results/large-meshes"))
    parser.add_argument("--json", nargs="+", help="files of sluice-sim's --json")
    parser.add_argument("--page", default=os.path.join(ROOT, "docs/large-meshes.md"))
    options = parser.parse_args()
    images = os.path.join(os.path.dirname(os.path.abspath(options.page)), "images")
    try:
        blocks = (own_blocks(options.json, images) if options.json
                  else standard_blocks(options.results, images))
    except (OSError, ValueError, KeyError) as error:
        sys.exit(f"report.py: {type(error).__name__}: {error}")
    if not blocks:
        sys.exit(f"report.py: no results in {options.results}")
    fill(options.page, blocks)
    return 0


if __name__ == "__main__":
    sys.exit(main())
