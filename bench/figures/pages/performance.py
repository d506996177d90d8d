"""docs/performance.md: its table of eight rows, and the text of each picture."""
from pages import budgets, cases, heads, pair, storage
from pages.markdown import image, spread_of, table


def answers(results):
    rows = [row for row in (
        _cases(results, "private",
               "16 ranks of a node, {} redistributions, **in your own memory**"),
        _cases(results, "shared", "the same **in memory that Sluice allocated**"),
        _two_nodes(results), _pair(results), _budget(results), _storage(results), _cast(results),
        _planning(results)) if row]
    return table(["question", "answer", "n", "how"], rows, left=4) if rows else ""


def _cases(results, memory, question):
    found = cases.of(results, memory)
    if not found:
        return None
    return [question.format(len(found)), cases.headline(found), heads.rounds(results, "best-mpi"),
            "`scripts/best_mpi.sh`; [picture](#24-redistributions)"]


def _two_nodes(results):
    found = two_nodes(results)
    if not found:
        return None
    text = "; ".join(f"the naive plan takes {spread_of(case['time_ratio'])} times as long where "
                     f"{case['bytes_ratio']:.0f} times the bytes cross" for case in found)
    return [f"two nodes of 8 ranks, {rate(results)} between them", text,
            heads.rounds(results, "two-nodes"), "`scripts/two_nodes.sh`"]


def two_nodes(results):
    data = results.get("two-nodes")
    return [{**case, "bytes_ratio": case["crossing_bytes"]["naive"] /
             case["crossing_bytes"]["relay"]} for case in data["results"]] if data else []


def rate(results):
    return results.get("two-nodes")["rate"].replace("gbit", " Gbit/s").replace("mbit", " Mbit/s")


def _pair(results):
    text = pair.answer(results)
    return text and ["one pair of ranks, 64 MiB", text, heads.rounds(results, "sizes"),
                     "`--compare-transports`; [picture](#bandwidth-against-size)"]


def _budget(results):
    real, simulated = budgets.real_answer(results), budgets.simulated_answer(results)
    text = "; ".join(part for part in (real, simulated) if part)
    return text and ["what a budget of 8 buckets costs", text,
                     f"{heads.rounds(results, 'budget-24')}; simulated 1"
                     if real else "simulated, 1",
                     "`scripts/budget_table.sh`, `sluice-sim peak`; "
                     "[picture](#what-a-budget-costs)"]


def _storage(results):
    text = storage.answer(results)
    return text and ["storage with 200 ms of latency", text,
                     heads.rounds(results, "latency"),
                     "`sluice-bench stream --latency-ms`; [picture](#storage-with-latency)"]


def _cast(results):
    found = cast(results, "f32_to_bf16")
    return found and ["casting f32 to bf16, one core",
                      f"{spread_of(found)} of memcpy's rate for as many bytes read and written",
                      str(found["n"]), "`copy_bench`"]


def cast(results, name):
    """Its rate over memcpy's, with streaming stores on one thread, or None."""
    data = results.get("copies")
    return next((run["ratio"] for run in data["results"] if run["name"].startswith(
        f"Cast/ratio_{name}/streaming:1/threads:1")), None) if data else None


def _planning(results):
    data = results.get("planning")
    if not data:
        return None
    return [f"planning DeepSeek-V3 for {data['ranks']:,} ranks",
            f"{spread_of(data['slowest_ms'], 0)} ms on the slowest of {data['samples']} ranks, "
            f"{data['memory_mb']['median']:.0f} MB for all of them", str(data["slowest_ms"]["n"]),
            "`plan_bench`"]


def case_picture(results):
    if not cases.of(results, "private") and not cases.of(results, "shared"):
        return ""
    return image("Time of each other way over ours, for 24 redistributions", "cases.svg") + \
        "\n\n" + cases.summary_table(results) + \
        (f"\n\n{cases.serial_text(results)}" if cases.serial_text(results) else "")


def sizes_picture(results):
    return image("GB/s against bytes, one pair of ranks", "sizes.svg") \
        if results.get("sizes") else ""
