#!/usr/bin/env python3
"""Draws the stages of a stream out of a trace: who read, copied, queued and computed when.

usage: draw_trace.py [--rank R] [--from S] [--to S] [--title TEXT] TRACE.json OUT.svg

TRACE.json: what `sluice-bench stream --trace` or ChromeTrace writes. Lanes, from above: reads of
storage, copies into device buffers, items that are ready and wait, and the consumer. Where spans of
one lane overlap, the colour is denser. Where the device is emulated, the lane says so. It prints:

  overlap   1 - (time in which the consumer waited) / (time in which a read, an exchange or a copy
            was under way): as `sluice-bench stream` has it, but of what is drawn
  reading   the share of the time in which at least one read was under way

Exit codes: 2, there is no trace with a stream of that rank; 1, OUT cannot be written.
Standard library only.
"""
import argparse
import json
import pathlib
import sys
from xml.sax.saxutils import escape

# Okabe and Ito's colours, on light pages and dark ones.
LANES = [("storage", "storage_read", "#0072b2"), ("copy", "device_copy", "#009e73"),
         ("queue", "queued", "#e69f00"), ("consumer", "consume", "#cc79a7")]
WAIT = "#d55e00"
WIDTH, LEFT, LANE, GAP, TOP = 900, 130, 34, 12, 46


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trace")
    parser.add_argument("out")
    parser.add_argument("--rank", type=int, default=0)
    parser.add_argument("--from", dest="begin", type=float, default=0, help="seconds [0]")
    parser.add_argument("--to", dest="end", type=float, default=float("inf"), help="[the end]")
    parser.add_argument("--title", default="")
    return parser.parse_args()


def spans_of(trace, rank):
    """(begin, end, item or None) in seconds, by name; and whether the device is emulated."""
    events = trace["traceEvents"]
    # "rank 3", or "rank 3 (its label)".
    processes = {event["pid"]: event["args"]["name"] for event in events
                 if event.get("name") == "process_name"
                 and event["args"]["name"].split(" (")[0] == f"rank {rank}"}
    spans = {}
    for event in events:
        if event.get("ph") == "X" and event.get("cat") == "stream" and event["pid"] in processes:
            begin = event["ts"] / 1e6
            args = event.get("args", {})
            spans.setdefault(event["name"], []).append(
                (begin, begin + event["dur"] / 1e6, (args.get("epoch"), args.get("item"))))
    threads = [event["args"]["name"] for event in events
               if event.get("name") == "thread_name" and event.get("pid") in processes]
    return spans, any("emulated" in name for name in [*processes.values(), *threads])


def queued(spans):
    """From the end of an item's last copy to its consumption."""
    taken = {item: begin for begin, _, item in spans.get("consume", [])}
    ready = {}
    for _, end, item in spans.get("device_copy", []):
        ready[item] = max(end, ready.get(item, 0))
    return [(end, taken[item], item) for item, end in ready.items() if taken.get(item, 0) > end]


def clip(spans, begin, end):
    return [(max(a, begin), min(b, end)) for a, b, _ in spans if b > begin and a < end]


def union(spans):
    """How long at least one of them lasts."""
    total, until = 0.0, float("-inf")
    for begin, end in sorted(spans):
        total += max(0.0, end - max(begin, until))
        until = max(until, end)
    return total


def draw(lanes, waits, begin, end, title):
    def x(at):
        return LEFT + (at - begin) / (end - begin) * (WIDTH - LEFT - 10)

    def bars(spans, y, color, opacity):
        return [f'<rect x="{x(a):.2f}" y="{y}" width="{max(x(b) - x(a), 0.3):.2f}" '
                f'height="{LANE}" fill="{color}" fill-opacity="{opacity}"/>' for a, b in spans]

    height = TOP + len(lanes) * (LANE + GAP) + 24
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
             'font-family="sans-serif" font-size="13" fill="#808080">',
             f'<text x="10" y="22" font-size="15">{escape(title)}</text>']
    for row, (name, spans, color) in enumerate(lanes):
        y = TOP + row * (LANE + GAP)
        dense = max(0.12, min(0.85, 12 / max(1, len(spans)) ** 0.5))
        parts += [f'<text x="10" y="{y + LANE / 2 + 4}">{name}</text>']
        parts += bars(spans, y, color, 0.85 if name == "consumer" else dense)
        if name == "consumer":
            parts += bars(waits, y, WAIT, 0.85)
    y = height - 8
    parts += [f'<text x="{LEFT}" y="{y}">{begin:.3g} s</text>',
              f'<text x="{WIDTH / 2}" y="{y}" text-anchor="middle" fill="{WAIT}">'
              'the consumer waits</text>',
              f'<text x="{WIDTH - 10}" y="{y}" text-anchor="end">{end:.3g} s</text>', "</svg>"]
    return "\n".join(parts) + "\n"


def main():
    arguments = parse_arguments()
    try:
        with open(arguments.trace, encoding="utf-8") as file:
            trace = json.load(file)
        spans, emulated = spans_of(trace, arguments.rank)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        fail(2, f"{arguments.trace}: {type(error).__name__}: {error}")
    if not spans.get("consume"):
        fail(2, f"{arguments.trace}: rank {arguments.rank} has consumed nothing in it")
    spans["queued"] = queued(spans)
    everything = [span for kind in spans.values() for span in kind]
    begin = max(arguments.begin, min(a for a, _, _ in everything))
    end = min(arguments.end, max(b for _, b, _ in everything))
    if not end > begin:
        fail(2, "--from and --to leave nothing to draw")
    lanes = [(name, clip(spans.get(kind, []), begin, end), color) for name, kind, color in LANES]
    if emulated:
        lanes[1] = ("copy (emulated)", *lanes[1][1:])
    work = [span for kind in ("storage_read", "exchange", "device_copy")
            for span in clip(spans.get(kind, []), begin, end)]
    waits = clip(spans.get("consumer_wait", []), begin, end)
    try:
        pathlib.Path(arguments.out).write_text(draw(lanes, waits, begin, end, arguments.title),
                                               encoding="utf-8")
    except OSError as error:
        fail(1, error)
    overlap = max(0.0, 1 - union(waits) / union(work)) if union(work) > 0 else 1.0
    print(f"overlap {overlap:.3f}, "
          f"reading {union(lanes[0][1]) / (end - begin):.3f} of {end - begin:.3f} s")


def fail(code, text):
    print(f"draw_trace.py: {text}", file=sys.stderr)
    sys.exit(code)


if __name__ == "__main__":
    main()
