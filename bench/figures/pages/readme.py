"""The README's six results, and where it loses."""
import textwrap

from pages import budgets, cases, losses, performance, python, storage


WIDTH = 118


def _wrapped(lines):
    return "\n".join(textwrap.fill(line, WIDTH, subsequent_indent="  ", break_long_words=False,
                                   break_on_hyphens=False) for line in lines)


def results_text(results):
    return _wrapped(f"* {line}" for line in (_peak(results), _crossing(results), _node(results),
                                             python.short_text(results), _storage(results),
                                             _planning(results)) if line)


def _peak(results):
    found = budgets.deepseek(results)
    if not found:
        return None
    free, eight = found
    return (f"**A peak that you choose.** DeepSeek-V3 from 128 to 128 ranks holds up to "
            f"{free['peak']['max']:,} buckets at once, or 8. With 8 it takes "
            f"{eight['ratio_to_no_budget']:.1f} times as long (simulated, "
            "[large meshes](docs/large-meshes.md)).")


def _crossing(results):
    found = performance.two_nodes(results)
    if not found:
        return None
    case = max(found, key=lambda one: one["bytes_ratio"])
    return (f"**Each byte once to a node.** Two nodes, 16 ranks, {performance.rate(results)}: "
            f"{case['time_ratio']['median']:.1f} times as fast as a plan that serves each rank by "
            f"itself. That plan sends {case['bytes_ratio']:.0f} times the bytes "
            "([performance](docs/performance.md)).")


def _node(results):
    own, shared = cases.of(results, "private"), cases.of(results, "shared")
    if not own:
        return None
    text = (f"**One copy within a node.** Over {len(own)} redistributions on 16 ranks, Open MPI's "
            f"best way takes {cases.median(own):.2f} times as long in your own memory (median; "
            f"least {cases.least(own):.2f}).")
    return text + (f" In memory that Sluice allocated it takes {cases.median(shared):.2f} times "
                   f"(least {cases.least(shared):.2f})." if shared else "")


def _storage(results):
    found = storage.of_little(results)
    return found and ("**Storage at full width.** With 200 ms of latency a stream reads at "
                      f"{found['median']:.2f} of what its budget allows. Ranks that need the same "
                      "bytes read them once between them ([streaming](docs/streaming.md)).")


def _planning(results):
    data = results.get("planning")
    return data and (f"**Plans without communication.** DeepSeek-V3 for {data['ranks']:,} ranks: "
                     f"{data['slowest_ms']['median']:.0f} ms on the slowest rank.")


def losses_text(results):
    """Some of what docs/performance.md has, with links from here."""
    return _wrapped(losses.short_text(results).replace("](", "](docs/").splitlines())
