"""Runs `sluice-bench shards` and `sluice-bench stream`, alone or under mpirun."""
import subprocess

from bench_run import BenchRun, job_limit


class Bench(BenchRun):
    def __init__(self, mpirun, program):
        super().__init__(mpirun, program, "stream")

    def shards(self, name, form, items, item_bytes, *more):
        """Makes them and returns their directory."""
        directory = self.path(name)
        job_limit.run([self.program, "shards", "--make", form, "--dir", directory, "--items",
                       str(items), "--item-bytes", str(item_bytes), *more],
                      stdout=subprocess.DEVNULL, check=True)
        return directory

    def good(self, world, args, **more):
        """The results by mode, of a run that has to succeed."""
        code, output, results = self.run(world, args, **more)
        assert code == 0, (args, output)
        check_keys(results)
        assert results["errors"] == [], results["errors"]
        assert "# Wrong elements : 0 OK" in output, output
        by_mode = {result["case"]: result for result in results["results"]}
        for result in by_mode.values():
            assert result["wrong"] == 0, result
            assert result["peak"]["slots"] <= result["limit"]["slots"], result
            assert result["peak"]["bytes"] <= result["limit"]["bytes"], result
        check_memory(by_mode["sluice"])
        return by_mode


BESIDE_STAGING = 8 << 20


def check_memory(result):
    memory = result["memory"]
    assert memory["method"] in ("peak", "sampled"), memory
    assert (memory["allowed_bytes"]
            == result["limit"]["bytes"] + result["device_bytes"] + BESIDE_STAGING), result
    assert 0 <= memory["growth_bytes"] <= memory["allowed_bytes"], result


RESULT_KEYS = {"case": str, "items": int, "bytes": int, "time_us": dict, "gb_per_s": float,
               "stall_share": float, "first_item_s": float, "half_s": float, "requests": int,
               "bytes_read": int, "opens": int, "hedges": int, "retries": int, "wrong": int,
               "bytes_copied": int, "cpu_s": float, "cpu_s_per_gib": float, "major_faults": int,
               "peak": dict, "limit": dict, "memory": dict, "stage_s": dict, "iterations_us": list}
STAGES = {"read", "exchange", "copy", "consume", "wait"}


def check_keys(results):
    """The interface of the results file."""
    assert isinstance(results["version"], str), results
    assert isinstance(results["config"], dict), results
    assert isinstance(results["errors"], list), results
    for result in results["results"]:
        for key, kind in RESULT_KEYS.items():
            assert key in result, (key, result)
            assert isinstance(result[key], (kind, int) if kind is float else kind), (key, result)
        assert set(result["peak"]) == {"slots", "bytes"}, result
        assert set(result["limit"]) == {"slots", "bytes"}, result
        assert set(result["stage_s"]) == STAGES, result
        assert len(result["iterations_us"]) == results["config"]["iters"], result
        assert 0 <= result["stall_share"] <= 1.000001, result
        assert 0 <= 1e6 * result["half_s"] <= result["time_us"]["median"], result
        if result["items"] > 1 and not results["errors"]:
            assert result["half_s"] > 0, result
