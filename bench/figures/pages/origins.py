"""docs/origins.md: the experiments of five notes, repeated here; tables and what they come to."""
import statistics

import verdict
from pages import budgets, heads, waves
from pages.markdown import image, spread_of, table


RESULTS = ("waves", "slots", "loaders", "mmap", "transforms", "hand-over", "budget-24",
           "budget-models", "serial", "stages", "generate")


def where(results):
    return heads.where(results, RESULTS)


def goals_text(*files):
    """How many of the files' goals were reached, and by how much the others were missed."""
    lines = [line for data in files if data for line in data.get("goals", ())]
    if not lines:
        return ""
    missed = [line for line in lines if not line["reached"]]
    return _joined(f"Goals reached: {len(lines) - len(missed)} of {len(lines)}.", missed and table(
        ["goal that was missed", "where", "at least", "measured"],
        [[line["words"], line["setting"], f"{line['least']:g}", _cell(line["measured"], 3)]
         for line in missed], left=2))


def _joined(*parts):
    return "\n\n".join(part for part in parts if part)


def _cell(entry, digits=2):
    return spread_of(entry, digits) if entry else "-"


# Parallel waves

def filling(results):
    if not waves.bars(results):
        return ""
    return _joined(image("Items per second of each way, at each latency", "waves.svg"), goals_text(
        *(results.get(name) for name in ("waves", "slots", "loaders"))))


# Double buffers, mapped files, transforms

WAYS = {"file": "`file:`", "buffered": "`buffered:`", "mmap": "`mmap:`",
        "mmap, no read-ahead": "`mmap:`, no read-ahead"}


def mapped(results):
    data = results.get("mmap")
    if not data:
        return ""
    rows = [[WAYS[row["way"]], _cell(row["cpu_s_per_gib"], 3),
             _cell(row["delivery_cpu_s_per_gib"], 3), f"{row['copied_share']['median']:.0%}",
             _cell(row["cold_faults_per_gib"], 0), _cell(row["cold_gb_per_s"])]
            for row in data["summary"]]
    return table(["source", "CPU s/GiB, each page looked at", "not looked at",
                  "bytes that Sluice copied", "not in the page cache: faults per GiB", "GB/s"],
                 rows)


TRANSFORM_GOAL = 0.7  # of memcpy's rate by bytes read and written, as planes of f32


def transforms(results):
    found = _planes(results)
    if "sluice" not in found:
        return ""
    text = ("Mean and standard deviation of each channel, `u8` to planes of `f32`: "
            f"{spread_of(found['sluice'])} of memcpy's rate for as many bytes")
    return text + (f"; numpy {spread_of(found['numpy-into'])}." if "numpy-into" in found else ".")


def _planes(results):
    """{way: of memcpy's rate}, to planes of f32."""
    data = results.get("transforms")
    return {row["way"]: _quartiles(row["of_memcpy"]) for row in (data["rows"] if data else ())
            if (row["to"], row["layout"]) == ("f32", "nchw")}


def _transform_goals(results):
    found = _planes(results).get("sluice")
    return found and {"goals": [verdict.at_least(
        "`u8` to planes of `f32`, of memcpy's rate", "one core", TRANSFORM_GOAL, found)]}


def _quartiles(found):
    return {"n": len(found["rounds"]), "median": found["median"], "q1": found["p25"],
            "q3": found["p75"]}


def hand_over(results):
    data = results.get("hand-over")
    if not data:
        return ""
    found = {(row["processes"], row["way"]): row["wall_ns"] for row in data["summary"]}
    texts = [f"With {count} process{'es' * (count > 1)}, handing over an item takes "
             f"{spread_of(found[count, 'stream'], 0)} ns, by a queue with a mutex "
             f"{spread_of(found[count, 'queue'], 0)} ns."
             for count in dict.fromkeys(processes for processes, _ in found)]
    return " ".join(texts)


def reading(results):
    return _joined(mapped(results), transforms(results), hand_over(results), goals_text(
        results.get("mmap"), _transform_goals(results), results.get("hand-over")))


# A global budget

def peaks(results):
    rows = [row for row in (_real(results), *_models(results), _simulated(results)) if row]
    return _joined(table(["job", "most buckets at once", "with a budget of 8",
                          "time with 8 / without", "a bucket per chunk: at once", "time / joined"],
                         rows) if rows else "", _serial(results))


def _real(results):
    found = budgets.real(results)
    if not found:
        return None
    ratios = [case["time_ratio"]["median"] for case in found]
    return [f"{len(found)} redistributions, 16 processes",
            max(case["free"]["buckets"] for case in found),
            max(case["eight"]["buckets"] for case in found),
            f"{statistics.median(ratios):.2f} (median), {max(ratios):.2f} (most)", "-", "-"]


def _models(results):
    data = results.get("budget-models")
    for case in data["cases"] if data else ():
        free, eight, apart = case["budgets"]["0"], case["budgets"]["8"], case["apart"]["0"]
        yield [f"{case['case'].split('/')[0]}, {case['ranks']} processes, dimensions / "
               f"{case['scale']}, {case['layers']} layers", free["peak_buckets"],
               eight["peak_buckets"], spread_of(_quartiles(eight["ratio"])),
               apart["peak_buckets"], spread_of(_quartiles(apart["ratio"]))]


def _simulated(results):
    found = budgets.deepseek(results)
    return found and ["DeepSeek-V3, 128 to 128 ranks, simulated", f"{found[0]['peak']['max']:,}",
                      found[1]["peak"]["max"], f"{found[1]['ratio_to_no_budget']:.2f}", "-", "-"]


def _serial(results):
    """The note's own step: from a chunk at a time to all of them in flight."""
    data = results.get("serial")
    if not data:
        return ""
    texts = ["The note's baseline is one chunk at a time."]
    for memory, words in (("private", "In your own memory"), ("shared", "In memory of Sluice's")):
        ratios = [one["baselines"]["serial"]["ratio"] for one in data["results"]
                  if one["memory"] == memory and (one.get("baselines") or {}).get("serial")]
        if ratios:
            texts.append(f"{words} it takes {statistics.median(ratios):.2f} times as long, in "
                         f"{len(ratios)} redistributions {min(ratios):.2f} to {max(ratios):.2f}.")
    return " ".join(texts)


# Three stages

def stages(results):
    data = results.get("stages")
    return _joined(_overlaps(data), goals_text(data)) if data else ""


def _overlaps(data):
    rows = [[f"{plain['step_ms']} ms", *(
        text for row in (plain, threaded) for text in (
            _cell(row["gb_per_s"]), f"{row['reads_at_once']['median']:.1f}",
            f"{row['copies_at_once']['median']:.2f}", _cell(row["overlap"], 3)))]
            for plain, threaded in _by_thread(data, "step_ms")]
    return table(["training step", "GB/s", "reads at once", "copies at once", "overlap",
                  "with a progress thread: GB/s", "reads", "copies", "overlap"], rows)


def _by_thread(data, key):
    """Rows of `data`: pairs, without and with a progress thread."""
    found = {(row[key], row["progress_thread"]): row for row in data["summary"]}
    return [(found[value, 0], found[value, 1]) for value in dict.fromkeys(one for one, _ in found)]


# Generation beside training

ORDERS = {"free": "`kFree`: any", "after-update": "`kAfterUpdate`: N",
          "one-ahead": "`kOneAhead`: N - 1"}


def generation(results):
    data = results.get("generate")
    if not data:
        return ""
    rows = [[ORDERS[plain["order"]], *(text for row in (plain, threaded) for text in (
        _cell(row["speed_up"], 3), _cell(row["of_ideal"], 3), _cell(row["of_loop"], 3))),
             f"{max(row['staleness_max']['max'] for row in (plain, threaded)):.0f}"]
            for plain, threaded in _by_thread(data, "order")]
    parameters = data["parameters"]
    return _joined(table(["order: which update batch N + 1 sees", "one after the other / ours",
                          "of the most that is possible", "plain loop / ours",
                          "with a progress thread", "of the most", "loop / ours",
                          "updates missing, at most"], rows),
                   f"{parameters['items']} items, {parameters['generate_ms']:g} ms to make one and "
                   f"{parameters['consume_us'] / 1000:g} ms to train with it. The items are the "
                   f"loop's in all orders: their hash is `{parameters['item_hash']}`. "
                   f"{goals_text(data)}")
