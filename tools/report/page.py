"""One HTML page of files of results and traces: tables and pictures, with nothing beside it."""
import collections
import io
import json
import math
import pathlib

import jinja2
import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt  # noqa: E402  after the choice of how to draw

import plot  # noqa: E402
import table  # noqa: E402

INK = "#010203"  # nobody's colour: text and axes, which take the page's
ROUTES_MAX = 64  # ranks in a picture
ROUTES_SHOWN = 8  # in a table
GATES_MAX = 6  # results in a picture
BARS_MAX = 40
TENSORS_MAX = 20


def in_bytes(value):
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(value) < 1024:
            break
        value /= 1024
    else:
        unit = "TiB"
    return f"{value:.4g} {unit}"


def in_time(us):
    if us < 1000:
        return f"{us:.4g} µs"
    return f"{us / 1e3:.4g} ms" if us < 1e6 else f"{us / 1e6:.4g} s"


def share(value):
    return f"{100 * value:.3g} %"


def times(value):
    return f"{value:.3g}"


# Key, title and how it is shown. Rows are shown by these, as far as any has them.
COLUMNS = [
    ("case", "case", str), ("check", "check", str), ("version", "version", table.number),
    ("epoch", "epoch", table.number), ("state", "state", str), ("value", "value", str),
    ("todo", "what to do", str), ("ranks", "ranks", table.cell), ("budget", "budget", table.number),
    ("payload_bytes", "payload", in_bytes), ("bytes", "payload", in_bytes),
    ("time_us.median", "time", in_time), ("gb_per_s", "GB/s", times), (None, "other ways", None),
    ("ratio_to_no_budget", "time / without a budget", times),
    ("ratio_to_link_bound", "time / busiest link's", times),
    ("peak.buckets", "buckets held", table.number),
    ("limit.buckets", "allowed", lambda value: table.number(value) if value else "any"),
    ("peak_without_budget.buckets", "buckets without a budget", table.number),
    ("peak.max", "buckets held", table.number),
    ("peak.bytes", "staging held", in_bytes), ("peak.bytes_max", "staging held", in_bytes),
    ("peak_without_budget.bytes", "staging without a budget", in_bytes),
    ("wait_share", "waits for the budget", share), ("stall_share", "consumers' waits", share),
    ("overlap", "overlap", share), ("node_bytes", "between nodes", in_bytes),
    ("hops_max", "hops", table.number), ("lost", "lost", str), ("wrong", "wrong", table.number)]


def cell(row, key, show):
    value = row.get(key)
    if value is None:
        return {"key": key, "value": None, "text": "", "bad": False}
    text = show(value) if not isinstance(value, (list, dict)) else table.cell(value)
    bad = key == "wrong" and bool(value) or key == "state" and value == "missing"
    return {"key": key, "value": value if isinstance(value, str) else json.dumps(value),
            "text": text, "bad": bad}


def shown_table(name, rows):
    """The rows by the columns above, and the other ways; or all there is, where none fits."""
    ways = list(dict.fromkeys(key.split(".")[1] for row in rows for key in row
                              if key.startswith("baselines.") and key.endswith(".time_us")))
    others = [column for way in ways
              for column in ((f"baselines.{way}.time_us", way, in_time),
                             (f"baselines.{way}.ratio", f"{way} / Sluice", times))]
    columns = [column for one in COLUMNS for column in (others if one[0] is None else [one])
               if any(row.get(column[0]) is not None for row in rows)]
    if name != "results" and not name.endswith("versions"):
        keys = dict.fromkeys(key for row in rows for key in row)
        columns = [(key, key, lambda value: value if isinstance(value, str) else table.cell(value))
                   for key in keys]
    return {"title": name.rpartition(".")[2].replace("_", " ").capitalize(), "note": "",
            "columns": [title for _, title, _ in columns],
            "rows": [[cell(row, key, show) for key, _, show in columns] for row in rows]}


def drawn(figure):
    """The picture as text to stand in a page: colours of text are the page's."""
    out = io.StringIO()
    figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    plt.close(figure)
    svg = plot.compact(out.getvalue())
    return svg[svg.index("<svg"):].replace(INK, "currentColor")


def figure(height, rows=1):
    made, axes = plt.subplots(rows, 1, squeeze=False, sharex=True, figsize=(9, height))
    for axis in axes[:, 0]:
        axis.tick_params(colors=INK, which="both")
        axis.xaxis.label.set_color(INK)
        axis.yaxis.label.set_color(INK)
        for spine in axis.spines.values():
            spine.set_edgecolor(INK)
    return made, axes[:, 0]


def round_ticks(axis, most, show):
    """Bytes have ticks at powers of two."""
    axis.set_major_formatter(lambda value, _: show(value) if value else "0")
    if show is in_bytes and most > 0:
        axis.set_major_locator(matplotlib.ticker.MultipleLocator(2 ** math.ceil(
            math.log2(most / 6))))


def bars(groups, label, show):
    """`groups`: (name, [(way, value)]). One group of horizontal bars each."""
    ways = list(dict.fromkeys(way for _, found in groups for way, _ in found))
    colors = dict(zip(ways, plot.COLORS * (1 + len(ways) // len(plot.COLORS))))
    made, (axis,) = figure(0.9 + sum(0.24 * len(found) + 0.16 for _, found in groups))
    y, ticks = 0.0, []
    for name, found in groups:
        ticks.append((y + 0.24 * (len(found) - 1) / 2, name))
        for way, value in found:
            axis.barh(y, value, height=0.22, color=colors[way])
            axis.annotate(show(value), (value, y), (4, 0), textcoords="offset points",
                          va="center", fontsize=8, color=INK)
            y += 0.24
        y += 0.16
    axis.set_yticks([at for at, _ in ticks], [name for _, name in ticks], color=INK)
    axis.set_ylim(y, -0.3)
    most = max(value for _, found in groups for _, value in found)
    axis.set_xlim(0, 1.15 * most or 1)
    axis.grid(axis="y", visible=False)
    round_ticks(axis.xaxis, most, show)
    axis.set_xlabel(label)
    handles = [plt.Rectangle((0, 0), 1, 1, color=colors[way]) for way in ways]
    made.legend(handles, ways, loc="outside upper right", ncols=min(4, len(ways)), labelcolor=INK)
    return drawn(made)


def ways_picture(rows):
    groups = []
    for row in rows:
        ours = row.get("time_us.median")
        others = [(key.split(".")[1], row[key]) for key in row if key.startswith("baselines.")
                  and key.endswith(".time_us") and row[key] is not None]
        if ours:
            groups.append((row.get("case", ""), [("Sluice", ours), *others]))
    if not groups or len(groups) == 1 and len(groups[0][1]) == 1:
        return []
    note = "The median of the timed rounds; shorter is better."
    if len(groups) > BARS_MAX:
        note += f" The first {BARS_MAX} of {len(groups)} cases."
    return [{"title": "Time of a run", "note": note,
             "svg": bars(groups[:BARS_MAX], "time", in_time)}]


def peaks_picture(rows):
    groups = []
    for row in rows:
        held = row.get("peak.bytes", row.get("peak.bytes_max"))
        free = row.get("peak_without_budget.bytes")
        found = [("held", held)] + ([("without a budget (planned)", free)] if free else [])
        if held is not None and max(held, free or 0) > 0:
            groups.append((row.get("case") or f"budget {row.get('budget')}", found))
    if not groups:
        return []
    return [{"title": "Staging held at once",
             "note": "On the rank that holds most. Messages that leave from tensors as they lie "
                     "take none.",
             "svg": bars(groups[:BARS_MAX], "bytes of staging", in_bytes)}]


def gate_picture(gates, note):
    """`gates`: (name, times in µs, buckets, bytes). Steps of buckets above, of bytes below."""
    staged = any(max(held, default=0) > 0 for _, _, _, held in gates)
    made, axes = figure(5 if staged else 2.8, rows=2 if staged else 1)
    for number, (name, at, buckets, held) in enumerate(gates[:GATES_MAX]):
        color = plot.COLORS[number % len(plot.COLORS)]
        for axis, values in zip(axes, (buckets, held)):
            axis.step([us / 1e3 for us in at], values, where="post", color=color, label=name)
    axes[0].set_ylabel("buckets in flight")
    axes[-1].set_xlabel("milliseconds")
    if staged:
        axes[1].set_ylabel("staging")
        round_ticks(axes[1].yaxis, max(max(held, default=0) for _, _, _, held in gates), in_bytes)
    for axis in axes:
        axis.set_ylim(bottom=0)
    made.legend(*axes[0].get_legend_handles_labels(), loc="outside upper right",
                labelcolor=INK, ncols=min(3, len(gates)))
    return {"title": "The gate over time", "note": note, "svg": drawn(made)}


def routes_picture(routes):
    """`routes`: bytes by (source, destination)."""
    ranks = 1 + max(max(pair) for pair in routes)
    table_of = {"title": "Routes", "note": "Bytes from one rank to another, the most first.",
                "columns": ["route", "bytes"],
                "rows": [[{"key": "route", "value": f"{src}-{dst}", "text": f"{src} → {dst}",
                           "bad": False},
                          {"key": "bytes", "value": moved, "text": in_bytes(moved), "bad": False}]
                         for (src, dst), moved in sorted(routes.items(), key=lambda one: (
                             -one[1], one[0]))[:ROUTES_SHOWN]]}
    if ranks > ROUTES_MAX:
        return [table_of], []
    made, (axis,) = figure(min(8.0, 1.6 + 0.3 * ranks))
    grid = [[routes.get((src, dst), float("nan")) for dst in range(ranks)] for src in range(ranks)]
    image = axis.imshow(grid, cmap="viridis", vmin=0)
    axis.grid(visible=False)
    axis.set_xlabel("to rank")
    axis.set_ylabel("from rank")
    axis.xaxis.set_major_locator(matplotlib.ticker.MaxNLocator(integer=True))
    axis.yaxis.set_major_locator(matplotlib.ticker.MaxNLocator(integer=True))
    scale = made.colorbar(image, ax=axis)
    round_ticks(scale.ax.yaxis, max(routes.values()), in_bytes)
    scale.ax.tick_params(colors=INK)
    return [table_of], [{"title": "Who sends what to whom",
                         "note": "Relays are senders, too. Empty squares: nothing.",
                         "svg": drawn(made)}]


def of_results(part):
    """(tables, pictures) of a file of results."""
    tables, pictures = [], []
    for name, rows in table.lists(part):
        if name.endswith(("errors", "wires")) or "." in name and "routes" in name:
            continue
        tables.append(shown_table(name, rows))
        if name == "results":
            pictures += ways_picture(rows) + peaks_picture(rows)
    results = part.get("results", []) if isinstance(part, dict) else []
    gates = [(row.get("case", ""), gate["us"], gate["buckets"], gate["bytes"])
             for row in results if isinstance(row, dict) and (gate := row.get("gate"))]
    if gates:
        pictures.append(gate_picture(gates, "In the first timed run, on the rank that held most."))
    routes = collections.Counter()
    for row in results:
        for route in row.get("routes", ()) if isinstance(row, dict) else ():
            routes[route["src"], route["dst"]] += route["bytes"]
    if routes:
        more = routes_picture(routes)
        tables += more[0]
        pictures += more[1]
    return tables, pictures


def of_trace(events):
    """(tables, pictures) of a trace: the busiest rank's gate, routes, and who comes last. Of its
    first run, as runs may be far apart."""
    gates, routes, late = {}, collections.Counter(), {}
    spans = [event for event in events if event["ph"] == "X" and event.get("cat") == "bucket"]
    run = min((event["args"]["run"] for event in spans), default=None)
    spans = [event for event in spans if event["args"]["run"] == run]
    begin = min((event["ts"] for event in spans), default=0)
    end = max((event["ts"] + event["dur"] for event in spans), default=0)
    names = {event["pid"]: event["args"]["name"] for event in events
             if event.get("name") == "process_name"}
    for event in events:
        if event["ph"] == "C" and begin <= event["ts"] <= end and event["name"] in (
                "buckets in flight", "bytes in flight"):
            (key, value), = event["args"].items()
            at = gates.setdefault(event["pid"], {}).setdefault(event["ts"] - begin, {})
            at[key] = value
    for event in spans:
        args = event["args"]
        if "from" in args:
            routes[args["from"], event["pid"] - 1] += args["bytes"]
        if "to" in args:
            routes[event["pid"] - 1, args["to"]] += args["bytes"]
        if "tensor" in args:
            last = (event["ts"] + event["dur"] - begin, event["pid"])
            late[args["tensor"]] = max(late.get(args["tensor"], last), last)
    tables, pictures = [], []
    if gates:
        pid = max(gates, key=lambda one: max(at.get("buckets", 0) for at in gates[one].values()))
        at = sorted(gates[pid])
        lines = {key: [gates[pid][us].get(key, 0) for us in at] for key in ("buckets", "bytes")}
        pictures.append(gate_picture([(names.get(pid, ""), at, lines["buckets"], lines["bytes"])],
                                     "In the first run, on the rank that held most buckets."))
    if late:
        rows = [{"tensor": tensor, "last_us": us, "rank": names.get(pid, "")}
                for tensor, (us, pid) in sorted(late.items(), key=lambda one: -one[1][0])]
        tables.append({"title": "Which tensors came last",
                       "note": "In the first run. Of a bucket with several, the first is named.",
                       "columns": ["tensor", "its last bucket", "on"],
                       "rows": [[cell(row, "tensor", str), cell(row, "last_us", in_time),
                                 cell(row, "rank", str)] for row in rows[:TENSORS_MAX]]})
    if routes:
        more = routes_picture(routes)
        tables += more[0]
        pictures += more[1]
    return tables, pictures


def facts(part):
    """What a reader wants to know first, on one line."""
    config = part.get("config", {})
    found = [f"Sluice {part['version']}" if isinstance(part.get("version"), str) else "",
             part.get("built_with", ""),
             f"{config['world']} ranks" if "world" in config else "",
             f"on {config['hosts']} host" + "s" * (config["hosts"] != 1) if "hosts" in config
             else "",
             config.get("mpi", "") if isinstance(config.get("mpi"), str) else ""]
    return ", ".join([str(fact) for fact in found if fact] + table.head(part))


def section(name, part):
    if isinstance(part, dict) and isinstance(part.get("traceEvents"), list):
        tables, pictures = of_trace(part["traceEvents"])
        if not pictures and not tables:
            raise ValueError(f"{name} is a trace without transfers; "
                             "scripts/measure/draw_trace.py draws streams")
        return {"name": name, "head": "A trace; ui.perfetto.dev shows all of it.", "errors": [],
                "tables": tables, "pictures": pictures, "config": []}
    if not isinstance(part, dict) or not any(table.lists(part)):
        raise ValueError(f"{name} has no rows: it is neither a file of results nor a trace")
    tables, pictures = of_results(part)
    errors = [f"{error.get('case') or 'all'}: {error.get('message')}"
              for error in part.get("errors", [])]
    config = [(key, table.cell(value)) for key, value in table.flat(part.get("config", {})).items()
              if value not in (None, "", [])]
    return {"name": name, "head": facts(part), "errors": errors, "tables": tables,
            "pictures": pictures, "config": config}


def page(parts, title=""):
    """The text of the page. `parts`: (name, what the file has). ValueError: nothing to show."""
    template = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined).from_string(
        pathlib.Path(__file__).resolve().with_name("page.html").read_text(encoding="utf-8"))
    return template.render(title=title or "Sluice report",
                           parts=[section(name, part) for name, part in parts])
