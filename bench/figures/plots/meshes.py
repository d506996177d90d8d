"""Peaks against mesh size, and what a budget costs: simulated."""
from pages.markdown import MIB
from pages.results import by
from plots import style


def draw_peaks(series, path):
    """`series`: (title, results) of meshes that grow."""
    figure, panels = style.panels(len(series) + 1, width=4.2, height=3.5)
    axes, cost = panels[:-1], panels[-1]
    _draw_cost(cost, series)
    for axis, (title, results) in zip(axes, series):
        axis.set_title(title, fontsize=10, loc="left")
        axis.set_xscale("log", base=2)
        axis.set_yscale("log", base=2)
        for number, ((budget,), group) in enumerate(sorted(by(results, "budget").items())):
            xs = [r["ranks"] for r in group]
            ys = [r["peak"]["max"] for r in group]
            axis.plot(xs, ys, color=style.COLORS[number], marker=style.MARKERS[number],
                      markersize=4)
            style.label_end(axis, xs[-1], ys[-1],
                            "no budget" if budget == 0 else f"budget {budget}", number)
        style.log_ticks(axis.xaxis, sorted({r["ranks"] for r in results}))
        peaks = [r["peak"]["max"] for r in results]
        style.log_ticks(axis.yaxis, [2 ** e for e in range(0, 24, 2) if 2 ** e <= 4 * max(peaks)])
        axis.set_ylim(bottom=min(peaks) / 2, top=3 * max(peaks))
        axis.tick_params(axis="x", labelsize=8, rotation=30)
        axis.set_xlabel("ranks")
    axes[0].set_ylabel("most buckets at once on any rank")
    style.save(figure, path, series)


def _draw_cost(axis, series):
    """Time with a budget over time without, where there are both."""
    axis.set_title("what the budget of 8 costs", fontsize=10, loc="left")
    axis.set_xscale("log", base=2)
    counts, highest = set(), 1
    for number, (title, results) in enumerate(series):
        times = {(r["ranks"], r["budget"]): r["makespan_us"] for r in results}
        xs = sorted(ranks for ranks, budget in times if budget == 8 and (ranks, 0) in times)
        ratios = [times[ranks, 8] / times[ranks, 0] for ranks in xs]
        highest = max([highest, *ratios])
        axis.plot(xs, ratios, color=style.COLORS[number], marker=style.MARKERS[number],
                  markersize=4, label=title)
        counts |= set(xs)
    style.log_ticks(axis.xaxis, sorted(counts))
    axis.tick_params(axis="x", labelsize=8, rotation=30)
    axis.set_ylim(bottom=0, top=1.2 * highest)
    axis.set_xlabel("ranks")
    axis.set_ylabel("time / time without a budget")
    axis.legend(loc="lower right", fontsize=9)


def draw_budgets(jobs, path):
    """`jobs`: (title, results of one job at several budgets). Time left, peak right."""
    figure, (time, peak) = style.panels(2, width=4.6, height=3.8)
    data = jobs
    jobs = [(title, results) for title, results in jobs
            if any(r["budget"] > 0 and r.get("ratio_to_no_budget") for r in results)]
    budgets = sorted({r["budget"] for _, results in jobs for r in results if r["budget"] > 0})
    none = 4 * budgets[-1]  # where "none" stands on the axis
    for number, (title, results) in enumerate(jobs):
        points = sorted(((r["budget"] or none), r["ratio_to_no_budget"],
                         r["peak"]["bytes_max"] / MIB)
                        for r in results if r.get("ratio_to_no_budget"))
        for axis, values in ((time, [p[1] for p in points]), (peak, [p[2] for p in points])):
            axis.plot([p[0] for p in points], values, color=style.COLORS[number],
                      marker=style.MARKERS[number], markersize=4, label=title)
    for axis in (time, peak):
        axis.set_xscale("log", base=2)
        style.log_ticks(axis.xaxis, budgets + [none],
                        lambda value: "none" if value == none else f"{value:,.0f}")
        axis.set_xlabel("budget (buckets of a rank)")
    time.axhline(1, color=style.GREY, linewidth=1, linestyle="--")
    time.set_ylim(bottom=0)
    time.set_ylabel("time / time without a budget")
    peak.set_yscale("log", base=4)
    highest = max(r["peak"]["bytes_max"] for _, results in jobs for r in results) / MIB
    style.log_ticks(peak.yaxis, [4 ** e for e in range(1, 9) if 4 ** e <= 4 * highest])
    peak.set_ylabel("staging of the busiest rank, MiB")
    handles, labels = time.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", fontsize=8.5, ncols=1)
    style.save(figure, path, data)
