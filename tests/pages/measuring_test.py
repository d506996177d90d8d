#!/usr/bin/env python3
"""What measures: turns, ratios and settings, out of times that are made up.

usage: measuring_test.py REPOSITORY
"""
import json
import pathlib
import sys
import tempfile
import unittest
from unittest import mock

ROOT = pathlib.Path(sys.argv.pop(1)).resolve()
sys.path[:0] = [str(ROOT / folder) for folder in ("scripts/measure", "bench/python",
                                                  "bench/figures")]

import best_mpi  # noqa: E402  after the folders are known
import compare_torch  # noqa: E402
import experiments  # noqa: E402
import loads  # noqa: E402
import rounds  # noqa: E402


class Turns(unittest.TestCase):
    def setUp(self):
        self.took = []

    def turns(self, case):
        return [lambda way=way: self.took.append(f"{case}{way}") or {way: {"time_us": float(at)}}
                for at, way in enumerate("xyz", 1)]

    def take(self, count, **more):
        return rounds.take_turns(count, [{"case": "a"}, {"case": "b"}], self.turns, **more)

    def test_every_other_round_goes_backwards(self):
        found = self.take(2)
        self.assertEqual(" ".join(self.took), "ax ay az bx by bz bz by bx az ay ax")
        self.assertEqual([len(of_rounds) for _, of_rounds in found], [2, 2])

    def test_no_turn_begins_when_the_minutes_are_over(self):
        with self.assertRaisesRegex(rounds.Failure, "no case has a whole round"):
            self.take(2, minutes=1e-9)
        self.assertEqual(self.took, [])

    def test_ratios_are_of_the_same_round(self):
        def of_round(x, y):
            return {"x": {"time_us": x, "peak": int(y), "word": "w"}, "y": {"time_us": y}}

        x, y = rounds.rows_of([({"case": "a"}, [of_round(1.0, 4.0), of_round(4.0, 2.0)])], "x")
        self.assertEqual(x["ratio"]["rounds"], [1, 1])
        self.assertEqual(y["ratio"]["rounds"], [4, 0.5])
        self.assertEqual((x["peak"], x["word"], y["time_us"]["median"]), (4, "w", 3))

    def test_a_way_that_cannot_has_no_ratio(self):
        x, y = rounds.rows_of([({}, [{"x": {"time_us": 1.0}, "y": {"time_us": None}}])], "x")
        self.assertIn("ratio", x)
        self.assertIsNone(y["time_us"])
        self.assertNotIn("ratio", y)


class Best(unittest.TestCase):
    def test_the_best_of_all_settings_and_of_the_same_memory(self):
        times = {"sluice": (10, 20), "isend": (15, 40), "serial": (30, 30), "bound": (5, 5)}
        found = best_mpi.row("a", "shared", [{
            f"{way}, {memory}, {copy}": {"time_us": of[memory == "shared"]}
            for way, of in times.items() for memory in best_mpi.MEMORIES
            for copy in ("CMA", "no CMA")}])
        self.assertEqual((found["best"], found["ratio"]["median"]), ("isend, private, CMA", 0.75))
        self.assertEqual((found["same"], found["same_ratio"]["median"]),
                         ("serial, shared, CMA", 1.5))
        self.assertEqual(found["of_bound"]["median"], 0.25)


class Settings(unittest.TestCase):
    def test_the_beginning_is_a_small_part_where_the_budget_is_enough(self):
        waves = next(one for one in experiments.EXPERIMENTS if one.name == "waves")
        for case in waves.cases:
            items = waves.more(**case)["items"]
            self.assertEqual(items % 32, 0)
            if case["latency_ms"] / 32 < case["consume_ms"]:
                self.assertLessEqual(case["latency_ms"] / (items * case["consume_ms"]), 0.035)

    def test_whole_windows(self):
        for slots in (1, 16, 512):
            self.assertEqual(experiments.whole_windows(slots, 1)["items"], 4 * slots)
            self.assertEqual(experiments.whole_windows(slots, 100 * slots)["items"], 100 * slots)

    def test_the_bound_is_of_the_window_or_of_the_rate_without_latency(self):
        found = {label: {"steady_gb_per_s": rate} for label, rate in (("0 ms", 2.0),
                                                                      ("50 ms", 0.5))}
        experiments.add_bound(found, slots=10**9)
        self.assertAlmostEqual(found["50 ms"]["of_bound"], 0.25)
        experiments.add_bound(found, slots=16)
        self.assertAlmostEqual(found["50 ms"]["of_bound"],
                               0.5e9 * (0.05 + 2**20 / 2e9) / 2**24)


class Redistribution(unittest.TestCase):
    def test_the_faster_packed_way_counts(self):
        times = {way: [1e3 * (median + step) for step in (-1, 0, 1)] for way, median in (
            ("sluice", 10), ("sluice-sync", 10), ("redistribute", 1), ("packed", 40),
            ("packed-each", 30), ("collective", 1))}
        found = compare_torch.redistribution(
            {"dtype": "f32", "to": "columns", "plan_us": 2500, "times": times}, "default")
        self.assertEqual(found["packed"], "packed-each")
        self.assertAlmostEqual(found["ratio"]["sluice"]["packed"]["median"], 3.0)


class Loading(unittest.TestCase):
    """Loads, with a program that is made up: its time is that of its setting."""

    class Checkpoint(loads.Checkpoint):
        files, tensors, checksum = [pathlib.Path("/nothing")], 3, 7

        def __init__(self):
            pass

        def prepare(self, case):
            pass

    def loads(self, **result):
        def call(command, variables):
            if variables.get("RUNAI_STREAMER_FS_STRATEGY") == "libaio_direct":
                raise rounds.Failure
            fast = command[3] == "safetensors-pread" or "RUNAI_STREAMER_CONCURRENCY" in variables
            return "said before\n" + json.dumps({"time_us": 1 if fast else 2, "tensors": 3,
                                                 "checksum": 7, "version": "1", **result})
        mock.patch.object(loads, "call", call).start()
        self.addCleanup(mock.patch.stopall)
        return loads.Loads("python", self.Checkpoint())

    def test_the_fastest_setting_takes_part(self):
        found = self.loads()
        chosen, tried = found.best("cold")
        self.assertEqual(chosen, {"sluice": "file", "runai": "4 threads", "safetensors": "pread"})
        self.assertEqual([row["setting"] for row in tried if "refused" in row], ["libaio_direct"])
        took = {way: of["time_us"] for turn in found.turns("cold", chosen)
                for way, of in turn().items()}
        self.assertEqual(took, {"sluice": 2, "runai": 1, "safetensors": 1})

    def test_wrong_elements_are_no_refusal(self):
        with self.assertRaisesRegex(SystemExit, "something else"):
            self.loads(checksum=8).best("warm")

    def test_what_the_page_cache_has(self):
        with tempfile.NamedTemporaryFile() as file:
            file.write(b"1" * 10000)
            file.flush()
            self.assertEqual(loads.cached([file.name]), 1.0)


if __name__ == "__main__":
    unittest.main()
