#!/usr/bin/env python3
"""What docs/figures/python.md makes of results that are made up, and how these come about.

usage: python_page_test.py REPOSITORY
"""
import json
import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(sys.argv.pop(1)).resolve()
sys.path[:0] = [str(ROOT / "bench/python"), str(ROOT / "bench/figures")]

import compare_torch  # noqa: E402  after the folders are known
import loads  # noqa: E402
from pages import python as page  # noqa: E402
from spread import spread  # noqa: E402

HEAD = {"machine": {"cpus": 2, "cpu": "a", "memory_gib": 1, "kernel": "k"}, "date": "2026-01-01",
        "commit": "0123456", "command": "c", "rounds": 3, "quick": False}


class Made:
    """Results that are there."""

    def __init__(self, parts=None):
        self.parts = parts

    def get(self, name):
        return self.parts if name == "python" else None


def times(median):
    return [1e3 * (median + step) for step in (-1, 0, 1)]


def redistribution(memory, **medians):
    """Of f32 to columns; milliseconds."""
    return compare_torch.redistribution(
        {"dtype": "f32", "to": "columns", "plan_us": 2500,
         "times": {way: times(median) for way, median in medians.items()}}, memory)


def redistributions():
    common = {"sluice-sync": 20, "packed-each": 60, "collective": 30}
    cases = [redistribution("default", sluice=10, redistribute=900, packed=40, **common),
             redistribution("kept", sluice=10, redistribute=80, packed=50, **common)]
    return {**HEAD, "processes": 8, "size": 64, "torch": "2.0", "sluice": "0.2", "report": "r",
            "fault_us": spread([0.5, 0.5]), "cases": cases,
            "goals": compare_torch.redistribution_goals(cases)}


def small():
    found = spread([90.0, 100.0, 110.0])
    return {**HEAD, "ranks": 2, "tensors": 300,
            "sync_us": {way: found for way in ("c++", "bound", "sync")},
            "start_us": {"c++": found, "bound": found}, "start_of_one_us": found,
            "start_more_us": found, "more_us": {"bound": found, "sync": found},
            "goals": [compare_torch.at_most("a goal", "300 tensors", most, found)
                      for most in (100, 99)]}


def start_up():
    return {**HEAD, "import_ms": spread([1.0, 2.0]), "wheel_bytes": 7654321,
            "goals": [compare_torch.at_most("the wheel, bytes", "one file", 8000000,
                                            spread([7654321]))]}


def checkpoints():
    row = {"case": "cold", "version": "1.2", "ratio": spread([1.0, 1.0])}
    return {**HEAD, "bytes": 2 << 30, "tensors": 3, "goals": [],
            "rows": [{**row, "way": "runai", "setting": "4 threads",
                      "time_us": spread([1e6, 1e6])}],
            "tried": [{"case": "cold", "way": "runai", "setting": "default",
                       "time_us": spread([3e6, 3e6])},
                      {"case": "cold", "way": "runai", "setting": "libaio_direct",
                       "refused": True}]}


class Goals(unittest.TestCase):
    def test_another_way_counts_in_the_memory_that_suits_it_best(self):
        found = {goal["words"]: goal for goal in redistributions()["goals"]}
        slow = found["redistribute's time over a bound transfer's"]
        self.assertEqual((slow["memory"], slow["measured"]["median"], slow["reached"]),
                         ("kept", 8.0, False))
        packed = found["packed batch_isend_irecv's time over a bound transfer's"]
        self.assertEqual((packed["memory"], packed["measured"]["median"], packed["reached"]),
                         ("default", 4.0, True))
        self.assertEqual(len(found), 4)

    def test_the_faster_packed_way_counts(self):
        found = redistribution("default", sluice=10, redistribute=1, packed=40, collective=1,
                               **{"sluice-sync": 10, "packed-each": 30})
        self.assertEqual(found["packed"], "packed-each")
        self.assertAlmostEqual(found["ratio"]["sluice"]["packed"]["median"], 3.0)

    def test_a_goal_is_reached_at_its_limit(self):
        self.assertEqual([goal["reached"] for goal in small()["goals"]], [True, False])


class Loading(unittest.TestCase):
    """Loads, with a program that is made up: its time is that of its setting."""

    class Checkpoint:
        path, tensors, checksum = pathlib.Path("/nothing"), 3, 7

        def prepare(self, case):
            pass

    class Refusal(Exception):
        pass

    def loads(self, **result):
        def call(command, env):
            if env.get("RUNAI_STREAMER_FS_STRATEGY") == "libaio_direct":
                raise self.Refusal
            fast = command[2] == "safetensors-pread" or "RUNAI_STREAMER_CONCURRENCY" in env
            return "said before\n" + json.dumps({"time_us": 1 if fast else 2, "tensors": 3,
                                                 "checksum": 7, "version": "1", **result})
        return loads.Loads("python", self.Checkpoint(), call, self.Refusal)

    def test_the_fastest_setting_takes_part(self):
        found = self.loads()
        chosen, tried = found.best("cold")
        self.assertEqual(chosen, {"sluice": "file", "runai": "4 threads", "safetensors": "pread"})
        self.assertEqual([row["setting"] for row in tried if "refused" in row], ["libaio_direct"])
        self.assertEqual(found.turns("cold", chosen, backwards=True),
                         {"safetensors": 1, "runai": 1, "sluice": 2})

    def test_wrong_elements_are_no_refusal(self):
        with self.assertRaisesRegex(loads.Failure, "something else"):
            self.loads(checksum=8).best("warm")

    def test_what_the_page_cache_has(self):
        with tempfile.NamedTemporaryFile() as file:
            file.write(b"1" * 10000)
            file.flush()
            self.assertEqual(loads.cached(file), 1.0)


class Page(unittest.TestCase):
    def test_nothing_is_said_without_results(self):
        for made in (Made(), Made({"head": HEAD})):
            for make in (page.redistributions, page.small, page.start_up, page.checkpoints,
                         page.goals, page.where):
                self.assertEqual(make(made), "")

    def test_redistributions(self):
        text = page.redistributions(Made({"redistributions": redistributions()}))
        self.assertIn("| f32 | columns | as it comes | 10.0 (9.5-10.5) | 20.0 (19.5-20.5) | 900.0 ",
                      text)
        self.assertIn("| f32 | columns | kept, huge pages | a bound transfer | 8.00 (", text)
        self.assertIn("2.5 to 2.5 ms", text)
        self.assertIn("0.50 (0.50-0.50) us on this machine", text)

    def test_small(self):
        text = page.small(Made({"small": small()}))
        self.assertIn("| C++ | 100 (95-105) |  | 100.0 (95.0-105.0) |", text)
        self.assertIn("| `sluice.sync` | 100 (95-105) | 100 (95-105) |  |", text)

    def test_start_up(self):
        self.assertIn("The wheel has 7.65 MB.", page.start_up(Made({"start-up": start_up()})))

    def test_checkpoints(self):
        text = page.checkpoints(Made({"checkpoints": checkpoints()}))
        self.assertIn("| storage | Run:ai model streamer 1.2 | 4 threads | 1000 | 2.15 |", text)
        self.assertIn("| storage | Run:ai model streamer | libaio_direct | refused |", text)

    def test_goals_that_were_missed_are_told(self):
        text = page.goals(Made({"redistributions": redistributions(), "small": small(),
                                "start-up": start_up()}))
        self.assertIn("Goals met: 4 of 7.", text)
        self.assertIn("| f32 to columns; memory kept, huge pages | at least 10 | 8.00 (7.", text)
        self.assertIn("| a goal | 300 tensors | at most 99 | 100.0 (95.0-105.0) | **not met** |",
                      text)
        self.assertIn("| one file | at most 8,000,000 | 7,654,321 | met |", text)

    def test_where(self):
        text = page.where(Made({"small": small(), "start-up": {**start_up(), "quick": True}}))
        self.assertIn("* small, start-up: 2 CPUs (a), 1 GiB, Linux k; 2026-01-01, commit", text)
        self.assertIn("no more: start-up.**", text)


if __name__ == "__main__":
    unittest.main()
