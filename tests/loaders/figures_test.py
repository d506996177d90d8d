#!/usr/bin/env python3
"""What docs/loaders.md makes of results: goals, tables and bars, of results that are made up.

usage: figures_test.py REPOSITORY
"""
import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(sys.argv.pop(1)).resolve()
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "bench/figures")]

import compare_loaders  # noqa: E402  after the folders are known
import verdict  # noqa: E402
from measured import hand_over, slots, waves  # noqa: E402
from pages import loaders as loaders_page  # noqa: E402
from pages import losses as losses_page  # noqa: E402
from pages import waves as waves_page  # noqa: E402
from spread import spread  # noqa: E402

SLUICE, TORCH = ("sluice", None), ("dataloader", None)
SHARDS_OF_1, SHARDS_OF_8 = ("webdataset", 1), ("webdataset", 8)


class Made:
    """Results that are there, by name."""

    def __init__(self, **files):
        self.files = {name.replace("_", "-"): file for name, file in files.items()}

    def get(self, name):
        return self.files.get(name)

    def simulated(self, _name):
        return []


def of_rounds(values):
    return {"min": min(values), "p25": sorted(values)[1], "median": sorted(values)[2],
            "p75": sorted(values)[3], "max": max(values), "rounds": values}


def row(way, shard_items, latency_ms, seconds, ratio, wait=0.25):
    times = [1e6 * seconds * (1 + 0.01 * i) for i in range(5)]
    return {"latency_ms": latency_ms, "way": way, "shard_items": shard_items, "version": "9.8",
            "latency_per": f"shard of {shard_items} items" if shard_items else "item",
            "reads_at_once": 8, "items_ahead": 32, "time_us": of_rounds(times),
            "items_per_s": 160 / (times[2] / 1e6), "ratio": of_rounds([ratio] * 5),
            "wait_share": of_rounds([wait] * 5), "wrong": 0}


def loaders_file():
    rows = [row("sluice", None, 50, 1, 1), row("warm", None, 50, 0.9, 0.9),
            row("waves:8", None, 50, 8, 8), row("serial", None, 50, 2, 2, 0.75),
            row("threads:8x4", None, 50, 4, 4), row("dataloader", None, 50, 3, 3),
            row("webdataset", 1, 50, 2.5, 2.5), row("webdataset", 8, 50, 0.5, 0.5)]
    return {"machine": {"cpu": "a", "cores": 2, "memory_bytes": 1 << 30, "kernel": "k"},
            "date": "2026-01-01", "commit": "0123456789", "changed": False, "command": "c",
            "rounds": 5, "items": {"count": 160, "bytes": 1 << 20}, "consume_us": 2000,
            "workers": 8, "ahead": 4, "slabs": 8, "rows": rows,
            "goals": [verdict.at_least("a goal", "50 ms", 1, spread([0.5, 0.5]))],
            "missing": [{"way": "dataloader-pinned", "reason": "no CUDA"}]}


def hand_over_file(queue_over):
    ways = [{"processes": 64, "way": way, "wall_ns": spread([200.0]), "cpu_ns": spread([100.0])}
            for way in ("stream", "queue")]
    ways[0]["queue_over"] = spread([queue_over])
    return {"rounds": 5, "summary": ways, "goals": []}


class Goals(unittest.TestCase):
    def test_the_exact_median_counts(self):
        self.assertFalse(verdict.at_least("a", "b", 1.0, spread([0.995, 0.996]))["reached"])
        self.assertTrue(verdict.at_least("a", "b", 1.0, spread([1.0, 1.2]))["reached"])
        self.assertFalse(verdict.at_least("a", "b", 1.0, spread([0.993, 0.994]))["reached"])

    def test_the_best_loader_is_that_of_each_round(self):
        rounds = {50: [{SLUICE: {"time_us": 10}, TORCH: {"time_us": 30 - number},
                        SHARDS_OF_1: {"time_us": 20 + number}, SHARDS_OF_8: {"time_us": 5}}
                       for number in (0, 9)]}
        found = {goal["words"]: goal for goal in compare_loaders.goals_of(
            rounds, [TORCH, SHARDS_OF_1, SHARDS_OF_8])}
        by_item = found["the best loader that reads item by item, time over Sluice's"]
        self.assertAlmostEqual(by_item["measured"]["median"], (2.0 + 2.1) / 2)
        self.assertTrue(by_item["reached"])
        of_all = found["the best loader, whole shards too, time over Sluice's"]
        self.assertAlmostEqual(of_all["measured"]["median"], 0.5)
        self.assertFalse(of_all["reached"])
        self.assertEqual(found["PyTorch's DataLoader, time over Sluice's"]["least"], 2.0)

    def test_dataloader_alone_counts_for_its_goal_from_50_ms_on(self):
        rounds = {20: [{SLUICE: {"time_us": 10}, TORCH: {"time_us": 30}}]}
        self.assertEqual([goal["least"] for goal in compare_loaders.goals_of(rounds, [TORCH])],
                         [1.0])

    def test_waves_are_compared_in_each_setting(self):
        runs = [{"latency_ms": 200, "consume_ms": ms, "mode": mode, "ours_over": over}
                for ms, mode, over in ((2, "waves:8", 8.0), (2, "warm", 0.4),
                                       (8, "waves:8", 4.0), (8, "warm", 0.96))]
        found = waves._goals(runs)
        self.assertEqual([(goal["least"], goal["measured"]["median"], goal["reached"])
                          for goal in found],
                         [(5.0, 8.0, True), (5.0, 4.0, False), (0.95, 0.96, True)])


class Settings(unittest.TestCase):
    def test_the_beginning_is_a_small_part_where_the_budget_is_enough(self):
        for latency_ms in waves.LATENCIES_MS:
            for consume_ms in waves.CONSUME_MS:
                items = waves.items_of(latency_ms, consume_ms)
                self.assertEqual(items % waves.SLOTS, 0)
                if waves.enough(latency_ms, consume_ms):
                    self.assertLessEqual(latency_ms / (items * consume_ms), 0.035)
        self.assertFalse(waves.enough(200, 2))  # 32 items in 200 ms are 6.25 ms for each
        self.assertTrue(waves.enough(200, 8))

    def test_ways_of_the_command_are_those_that_are_read(self):
        for mode in waves.OTHERS:
            self.assertIn(mode, waves.COMMAND)
            self.assertIn(mode, waves_page.NAMES)
        self.assertIn(f"{slots.SLOTS[0]}..{slots.SLOTS[-1]}", slots.COMMAND)
        self.assertEqual(set(hand_over.SECONDS), set(hand_over.PROCESSES))


class Page(unittest.TestCase):
    def test_nothing_is_said_without_results(self):
        none = Made()
        for make in (waves_page.waves, waves_page.slots, loaders_page.loaders,
                     loaders_page.waiting, loaders_page.hand_over, loaders_page.where):
            self.assertEqual(make(none), "")
        self.assertFalse(waves_page.bars(none) or waves_page.slot_lines(none))

    def test_loaders(self):
        text = loaders_page.loaders(Made(loaders=loaders_file()))
        self.assertIn("| webdataset 9.8, shard of 8 items | 32 | 314; 0.50 (0.50-0.50) |", text)
        self.assertIn("| one of 8 slabs at a time | 32 |", text)
        self.assertIn("Not measured: PyTorch DataLoader, pinned; no CUDA.", text)
        self.assertIn("| a goal | 1 | **0.50 (0.50-0.50)** |", text)

    def test_what_a_step_waits(self):
        text = loaders_page.waiting(Made(loaders=loaders_file()))
        self.assertIn("| the whole budget at a time | 75%; 78 |", text)
        self.assertIn("| 8 loader threads | 25%; 39 |", text)
        self.assertNotIn("webdataset", text)

    def test_handing_over(self):
        text = loaders_page.hand_over(Made(hand_over=hand_over_file(0.5)))
        self.assertIn("| 64 | nothing | 200 (200-200) | 100 (100-100) | 200 (200-200) |", text)
        self.assertIn("| **0.50 (0.50-0.50)** |", text)
        self.assertIn("| 1.50 (1.50-1.50) |",
                      loaders_page.hand_over(Made(hand_over=hand_over_file(1.5))))

    def test_bars_show_each_library_at_its_best(self):
        panel, = waves_page.bars(Made(loaders=loaders_file()))
        bars = panel["latencies"]["50"]
        self.assertAlmostEqual(bars["webdataset"]["median"], 160 / (0.5 * 1.02))
        self.assertLess(bars["webdataset"]["q1"], bars["webdataset"]["q3"])
        self.assertIn("one of 8 slabs at a time", bars)

    def test_losses_are_told(self):
        behind = Made(loaders=loaders_file(), hand_over=hand_over_file(0.5))
        text = losses_page.text(behind)
        self.assertIn("webdataset 9.8, shard of 8 items is 2.00 (2.00-2.00) times as fast", text)
        self.assertIn("a queue with a mutex is 2.0 (2.0-2.0) times as fast", text)
        self.assertNotIn("queue", losses_page.text(Made(hand_over=hand_over_file(1.5))))


class Plots(unittest.TestCase):
    def test_they_are_drawn(self):
        try:
            from plots import slots as slots_plot
            from plots import waves as waves_plot
        except ImportError as error:
            self.skipTest(f"plots take matplotlib: {error}")
        data = {"base": {"median": 2, "q1": 2, "q3": 2}, "item_bytes": 1 << 20,
                "lines": [{"latency_ms": ms, "slots": count, "median": 0.5, "q1": 0.4, "q3": 0.6}
                          for ms in (20, 200) for count in (1, 2, 4)]}
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "plot.svg")
            for draw, shown in ((slots_plot.draw, data),
                                (waves_plot.draw, waves_page.bars(Made(loaders=loaders_file())))):
                draw(shown, path)
                self.assertIn("ms", path.read_text(encoding="utf-8"))


if __name__ == "__main__":
    unittest.main()
