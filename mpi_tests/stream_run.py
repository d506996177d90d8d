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
        check_times(results)
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


def check_times(results):
    """Times and shares that fit together. results_schema_test.py looks at the keys."""
    for result in results["results"]:
        assert len(result["iterations_us"]) == results["config"]["iters"], result
        assert 0 <= result["stall_share"] <= 1.000001, result
        assert 0 <= 1e6 * result["half_s"] <= result["time_us"]["median"], result
        if result["items"] > 1 and not results["errors"]:
            assert result["half_s"] > 0, result
