"""Tables of docs/large-meshes.md: what sluice-sim found on meshes of up to 65,536 ranks."""
from pages.markdown import MIB, image, table
from pages.results import by

MODELS = (("deepseek-v3", "DeepSeek-V3, 128 (pp8 ep16) to 128 (tp8 dp16)"),
          ("qwen3-235b", "Qwen3-235B, 64 (pp4 tp4 ep8) to 64 (tp8 ep16)"),
          ("llama-3-70b", "Llama-3-70B, FSDP 512 to 64 (tp8 dp8)"),
          ("65536-ranks", "Llama-3-70B, one layer, 32,768 to 32,768"))


def growing(results):
    """Meshes that grow: [(title, results)]."""
    named = (("all to all", "all-to-all"), ("each to 256 others", "peers"))
    series = [(title, results.simulated(name) + results.simulated(name + "-65536"))
              for title, name in named]
    return [(title, found) for title, found in series if found]


def jobs(results):
    """Models, at several budgets: [(title, results)]."""
    return [(title, _with_free(results, name)) for name, title in MODELS if results.simulated(name)]


def _with_free(results, name):
    """A run without a budget may stand in a file of its own, as it takes more memory."""
    found = results.simulated(name)
    free = results.simulated(name + "-free")
    if not free or any(r["budget"] == 0 for r in found):
        return found
    return [*free, *({**r, "ratio_to_no_budget": r["makespan_us"] / free[0]["makespan_us"]}
                     for r in found)]


def families(results):
    return [(name, results.simulated(name)) for name in ("fsdp-tp", "pp-ep-tp-dp")
            if results.simulated(name)]


def peaks(results):
    series = growing(results)
    if not series:
        return ""
    return "\n\n".join([image("peaks against mesh size", "peaks.svg")] +
                       [f"{title.capitalize()}:\n\n{growth_table(found)}"
                        for title, found in series])


# Models whose data-parallel ranks are repeated: files large-meshes/replicas-NAME[-apart].json.
REPEATED = (("qwen3-235b", "Qwen3-235B, 2 layers, tp2 pp2 ep4 to tp8 ep16"),
            ("llama-3-8b", "Llama-3-8B, 1 layer, fsdp16 to tp8"),
            ("deepseek-v3", "DeepSeek-V3, 4 layers, pp2 ep8 to tp4 ep16"))


def repeated(results):
    """[(title, {joined: results, apart: results})]"""
    found = [(title, {"joined": results.simulated(f"replicas-{name}"),
                      "apart": results.simulated(f"replicas-{name}-apart")})
             for name, title in REPEATED]
    return [(title, ways) for title, ways in found if any(ways.values())]


def replicas(results):
    found = repeated(results)
    return replicas_table(found) if found else ""


def replicas_table(named):
    rows = []
    for title, ways in named:
        sizes = sorted({r["ranks"] for found in ways.values() for r in found})
        for ranks in sizes:
            for way, words in (("joined", "joined"), ("apart", "not")):
                free, eight = (_one(ways[way], ranks, budget) for budget in (0, 8))
                if not free and not eight:
                    continue
                rows.append([title, f"{ranks:,}", words, *_held(free), *_held(eight),
                             ratio_of(free, eight)])
                title = ""
    return table(["model", "ranks", "chunks", "peak, no budget", "bytes", "messages", "ms",
                  "peak, budget 8", "bytes", "messages", "ms", "time, 8 / none"], rows, left=1)


def _one(found, ranks, budget):
    return next((r for r in found if r["ranks"] == ranks and r["budget"] == budget), None)


def _held(r):
    return [f"{r['peak']['max']:,}", mib(r), f"{r['peak']['ops_max']:,}",
            f"{r['makespan_us'] / 1e3:,.1f}"] if r else ["-"] * 4


def ratio_of(free, eight):
    """Time with a budget over time without."""
    return f"{eight['makespan_us'] / free['makespan_us']:.2f}" if free and eight else "-"


def small_buckets(results):
    found = results.simulated("small-buckets")
    return growth_table(found) if found else ""


def models(results):
    found = jobs(results)
    if not found:
        return ""
    return image("time and peak against budget", "budgets.svg") + "\n\n" + budget_table(found)


def family_times(results):
    found = families(results)
    return family_table(found) if found else ""


def planning(results):
    alike = [(name, results.simulated(name)) for name in ("all-to-all", "peers", "65536-ranks")]
    found = [(name, group) for name, group in families(results) + alike if group]
    return planning_table(found) if found else ""


def check(results):
    data = results.get("large-meshes/check")
    return check_table(data["rows"]) if data else ""


def check_summary(results):
    """The comparison with SimGrid in ten lines: by ranks."""
    data = results.get("large-meshes/check")
    if not data:
        return ""
    rows = []
    for (ranks,), group in sorted(by(data["rows"], "ranks").items()):
        ratios = sorted(row["sim"]["us"] / row["smpi"]["us"] for row in group)
        real = [row for row in group if row.get("mpirun")]
        rows.append([f"{ranks}", str(len(group)), _same(group, "smpi", "buckets"),
                     _same(group, "smpi", "ops"),
                     _same(real, "mpirun", "buckets") if real else "not run",
                     f"{ratios[len(ratios) // 2]:.2f}", f"{ratios[0]:.2f}-{ratios[-1]:.2f}",
                     str(sum(0.88 <= ratio <= 1 / 0.88 for ratio in ratios))])
    return table(["ranks", "cases", "peak buckets as SMPI's", "peak messages as SMPI's",
                  "peak buckets as mpirun's", "time / SMPI's, median", "range", "within 12%"], rows)


def messages(results):
    """Control messages of the busiest rank in each stage of a session, as SimGrid's MPI had them:
    of Sluice before and now."""
    data = results.get("large-meshes/messages")
    if not data:
        return ""
    found = {(row["code"], row["ranks"]): {stage["stage"]: stage for stage in row["stages"]}
             for row in data["rows"]}
    sizes = sorted({ranks for code, ranks in found if code == "now"})
    rows = []
    for stage in found["now", sizes[-1]]:
        row = [stage]
        for ranks in sizes:
            row.append(" / ".join(f"{found[code, ranks][stage]['control_max']:,}"
                                  if (code, ranks) in found else "-" for code in ("before", "now")))
        row.append(" / ".join(f"{found[code, sizes[-1]][stage]['us']:,.0f}"
                              if (code, sizes[-1]) in found else "-" for code in ("before", "now")))
        rows.append(row)
    return table(["before / now"] + [f"{ranks} ranks" for ranks in sizes] +
                 [f"us, {sizes[-1]} ranks"], rows)


def _same(rows, other, key):
    same = sum(row["sim"][key] == row[other][key] for row in rows)
    return f"{same} of {len(rows)}"


def budget_name(budget):
    return "none" if budget == 0 else str(budget)


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
        if 0 in budgets and 8 in budgets:
            row.append(ratio_of(*(_one(group, ranks, budget) for budget in (0, 8))))
        rows.append(row)
    return table(header + ["time, 8 / none"] * (0 in budgets and 8 in budgets), rows)


def mib(result):
    return f"{result['peak']['bytes_max'] / MIB:,.0f} MiB"


def budget_table(named):
    rows = []
    for title, results in named:
        for r in results:
            ratio = r.get("ratio_to_no_budget")
            rows.append([title, budget_name(r["budget"]), f"{r['peak']['max']:,}",
                         f"{ratio:.2f}" if ratio else "-",
                         f"{r['peak']['median']:,.0f}", mib(r), _messages(r),
                         f"{r['channels_max']:,}", f"{r['makespan_us'] / 1e3:,.1f}",
                         f"{r['ratio_to_link_bound']:.2f}"])
            title = ""
    return table(["job", "budget", "peak", "time / no budget", "median rank", "bytes", "messages",
                  "channels", "ms", "/ link bound"], rows)


def _messages(r):
    count = r["peak"].get("ops_max")
    return "-" if count is None else f"{count:,}"


def family_table(named):
    rows = []
    budgets = sorted({r["budget"] for _, results in named for r in results})
    for title, results in named:
        for (ranks,), group in sorted(by(results, "ranks").items()):
            times = {r["budget"]: r["makespan_us"] / 1e3 for r in group}
            rows.append([title, f"{ranks:,}"] + [f"{times[b]:,.1f}" if b in times else "-"
                                                 for b in budgets])
            title = ""
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
                         f"{costs['plan_bytes_per_rank'] * ranks / distinct / 1024:,.1f}",
                         f"{costs['simulate_seconds']:,.1f}"])
            title = ""
    return table(["family", "ranks", "channels", "plans made", "s for all", "ms each", "KiB each",
                  "simulating, s"], rows)


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
