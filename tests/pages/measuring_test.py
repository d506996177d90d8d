#!/usr/bin/env python3
"""The scripts that compare: goals and ratios out of times that are made up, and the best settings.

usage: measuring_test.py REPOSITORY
"""
import json
import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(sys.argv.pop(1)).resolve()
sys.path[:0] = [str(ROOT / folder) for folder in ("scripts", "bench/python", "bench/figures")]

import compare_loaders  # noqa: E402  after the folders are known
import compare_torch  # noqa: E402
import loads  # noqa: E402
import verdict  # noqa: E402
from measured import hand_over, slots, waves  # noqa: E402
from spread import spread  # noqa: E402

SLUICE, TORCH = ("sluice", None), ("dataloader", None)
SHARDS_OF_1, SHARDS_OF_8 = ("webdataset", 1), ("webdataset", 8)


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
        self.assertIn(f"{slots.SLOTS[0]}..{slots.SLOTS[-1]}", slots.COMMAND)
        self.assertEqual(set(hand_over.SECONDS), set(hand_over.PROCESSES))


def times(median):
    return [1e3 * (median + step) for step in (-1, 0, 1)]


def redistribution(memory, **medians):
    """Of f32 to columns; milliseconds."""
    return compare_torch.redistribution(
        {"dtype": "f32", "to": "columns", "plan_us": 2500,
         "times": {way: times(median) for way, median in medians.items()}}, memory)


def cases():
    common = {"sluice-sync": 20, "packed-each": 60, "collective": 30}
    return [redistribution("default", sluice=10, redistribute=900, packed=40, **common),
            redistribution("kept", sluice=10, redistribute=80, packed=50, **common)]


class TorchGoals(unittest.TestCase):
    def test_another_way_counts_in_the_memory_that_suits_it_best(self):
        found = {goal["words"]: goal for goal in compare_torch.redistribution_goals(cases())}
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
        found = spread([90.0, 100.0, 110.0])
        self.assertEqual([compare_torch.at_most("a", "b", most, found)["reached"]
                          for most in (100, 99)], [True, False])


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


if __name__ == "__main__":
    unittest.main()
