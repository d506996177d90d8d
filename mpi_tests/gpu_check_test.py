#!/usr/bin/env python3
"""scripts/gpu_check.sh over the fakes: every step runs, and what it says is so.

usage: gpu_check_test.py GPU_CHECK SLUICE_BENCH_FAKE_GPU
"""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from bench_run import job_limit

SCRIPT, BENCH = (pathlib.Path(path).resolve() for path in sys.argv[1:3])
LIMIT_S = 1200  # of the script, against hanging

# The fakes copy on the host, so what is moved is smaller. And a machine with other work to do is
# no fault of theirs.
SMALLER = {"16384,8192": "64,32", "4096,4096": "64,64", "1024,1024": "32,32", "10000": "30",
           "4M": "4K"}
BENCH_SCRIPT = """#!/usr/bin/env python3
import os, sys
smaller = {smaller!r}
words = [smaller.get(each, each) for each in sys.argv[1:]]
if words[0] == "reshard":
    if "--timeout-s" not in words:
        words += ["--timeout-s", ""]
    words[words.index("--timeout-s") + 1] = "200"
os.execv({bench!r}, [{bench!r}] + words)
"""
PATIENT_TIMEOUT = """#!/usr/bin/env bash
[ "$1" = -k ] || exit 125
exec {timeout} -k "$2" 300 "${{@:4}}"
"""
TESTS = """#!/usr/bin/env bash
echo "$(basename "$0") $*" >>"{calls}"
echo '[==========] Running 3 tests from 1 test suite.'
"""
SKIPPING = """#!/usr/bin/env bash
echo '[==========] Running 5 tests from 1 test suite.'
echo 'some_test.cc:32: Skipped'
echo '1 GPUs for 2 ranks'
echo '[  PASSED  ] {passed} tests.'
echo '[  SKIPPED ] 3 tests, listed below:'
exit 77
"""
RATES = """#!/usr/bin/env bash
while [ $# -gt 0 ]; do [ "$1" != --json ] || echo '{"cases": []}' >"$2"; shift; done
"""
NVIDIA_SMI = """#!/usr/bin/env bash
for i in $(seq {gpus}); do echo "NVIDIA Fake 80GB, 580.1"; done
"""
CHECKER = """#!/usr/bin/env bash
while [ "${1:0:2}" = -- ]; do case $1 in --error-exitcode|--report-api-errors) shift;; esac; shift
done
exec "$@"
"""


class GpuCheckTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="sluice-gpu-check-")
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.out = self.root / "out"
        self.calls = self.root / "calls"
        (self.root / "build" / "bin").mkdir(parents=True)
        (self.root / "path").mkdir()
        for name in ("cuda_device_gpu_test", "nccl_transport_gpu_test", "cuda_transports_gpu_mpi",
                     "cuda_streams_gpu_mpi"):
            self.program(name, TESTS.format(calls=self.calls))
        self.program("gpu_bench", RATES)
        self.program("sluice-bench", BENCH_SCRIPT.format(smaller=SMALLER, bench=str(BENCH)))
        self.tool("compute-sanitizer", CHECKER)
        self.tool("timeout", PATIENT_TIMEOUT.format(timeout=shutil.which("timeout")))
        self.gpus(2)

    def program(self, name, text):
        self.write(self.root / "build" / "bin" / name, text)

    def tool(self, name, text):
        self.write(self.root / "path" / name, text)

    def gpus(self, count):
        self.tool("nvidia-smi", NVIDIA_SMI.format(gpus=count))

    @staticmethod
    def write(path, text):
        path.write_text(text, encoding="utf-8")
        path.chmod(0o755)

    def start(self, *options):
        environment = dict(os.environ, FAKE_CUDA_DEVICES="2", RUN="",
                           PATH=f"{self.root / 'path'}:{os.environ['PATH']}")
        return subprocess.Popen(
            [str(SCRIPT), *options, str(self.root / "build"), str(self.out)], env=environment,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def check(self, *options):
        if "--limit" not in options:
            options = ("--limit", str(LIMIT_S), *options)
        return self.end(self.start(*options))

    def end(self, process):
        with job_limit.limited("gpu_check.sh", LIMIT_S):
            text, _ = process.communicate()
        return process.returncode, text

    def report(self):
        return json.loads((self.out / "gpu-nvidia-fake-80gb.json").read_text(encoding="utf-8"))

    def outcomes(self):
        return {name: step["outcome"] for name, step in self.report()["steps"].items()}

    def test_every_step_runs_and_passes(self):
        code, text = self.check()
        outcomes = self.outcomes()
        self.assertEqual(code, 0, text)
        self.assertEqual({name: outcome for name, outcome in outcomes.items()
                          if outcome != "passed"}, {}, text)
        for name in ("device", "ipc", "nccl", "thread", "local", "cuda_ipc", "mpi", "mixed",
                     "streams", "captures", "memory", "nccl_two", "nccl_registered",
                     "nccl_two_contract", "nccl_streams", "nccl_captures", "rates", "tiny_local",
                     "tiny_ipc", "shards", "stream", "checker"):
            self.assertIn(name, outcomes)
        report = self.report()
        self.assertEqual((report["mixed"]["config"]["src_device"],
                          report["mixed"]["config"]["dst_device"]), ("cuda", "cpu"))
        self.assertEqual(report["nccl_two"]["config"]["transport"], "nccl")
        self.assertEqual([report[name]["config"]["register_staging"]
                          for name in ("nccl_two", "nccl_registered")], [False, True])
        for name in ("thread", "local", "cuda_ipc", "mpi", "mixed", "nccl_two", "nccl_registered",
                     "tiny_ipc"):
            self.assertEqual(report[name]["results"][0]["wrong"], 0, name)
        table = (self.out / "gpu-nvidia-fake-80gb.md").read_text(encoding="utf-8")
        for what in ("GPUs on several nodes", "overlap of packing, moving and unpacking"):
            self.assertIn(f"| {what} | no step shows it |", table)
        self.assertIn("| captures of graphs beside sessions | captures |", table)
        self.assertIn("it takes 3 GPUs", table)
        self.assertIn(table, text)
        calls = self.calls.read_text(encoding="utf-8")
        self.assertIn("cuda_transports_gpu_mpi --gtest_filter=Nccl*", calls)
        self.assertIn("cuda_transports_gpu_mpi --gtest_filter=CudaIpc*\n", calls)
        self.assertIn("cuda_device_gpu_test --gtest_filter=CudaDeviceTest", calls)

    def test_one_gpu_says_why_nccl_was_not_proven(self):
        self.gpus(1)
        self.tool("python3", f'#!/usr/bin/env bash\nif [ "$1" = -c ]; then echo 22809; exit; fi\n'
                             f'exec {sys.executable} "$@"\n')
        code, text = self.check("--only", "^(device|ipc|nccl_.*)$")
        self.assertEqual(code, 0, text)
        self.assertIn("--gtest_filter=CudaIpc*/OneGpu\n", self.calls.read_text(encoding="utf-8"))
        outcomes = self.outcomes()
        self.assertEqual(outcomes["device"], "passed")
        self.assertEqual(outcomes["nccl_two"],
                         "not run: one GPU, and NCCL 22809 (2.30.3 and later take two ranks)")
        self.assertEqual(outcomes["nccl_registered"], outcomes["nccl_two"])
        for name in ("nccl_two_contract", "nccl_streams", "nccl_captures"):
            self.assertEqual(outcomes[name], outcomes["nccl_two"])
        # Steps that this call was not to take.
        table = (self.out / "gpu-nvidia-fake-80gb.md").read_text(encoding="utf-8")
        self.assertIn("| captures of graphs beside a session | captures: not run |", table)

    def test_a_program_that_skips_some_tests_has_passed_and_says_so(self):
        for name, passed in (("cuda_device_gpu_test", 2), ("nccl_transport_gpu_test", 0)):
            self.program(name, SKIPPING.format(passed=passed))
        code, text = self.check("--only", "^(device|nccl)$")
        self.assertEqual(code, 0, text)
        self.assertEqual(self.outcomes(), {"device": "passed, 3 skipped: 1 GPUs for 2 ranks",
                                           "nccl": "skipped: 1 GPUs for 2 ranks"})
        proven, _, others = text.partition("| not proven | why |")
        self.assertIn("| device, 3 skipped: 1 GPUs for 2 ranks |", proven)
        self.assertIn("| nccl: skipped: 1 GPUs for 2 ranks |", others)

    def test_what_fails_is_said_and_the_rest_goes_on(self):
        self.program("cuda_device_gpu_test", "#!/bin/bash\necho broken\nexit 3\n")
        self.program("nccl_transport_gpu_test",
                     "#!/bin/bash\necho '[==========] Running 0 tests from 0 test suites.'\n")
        code, text = self.check("--only", "^(device|nccl|rates)$")
        self.assertEqual(code, 1, text)
        self.assertEqual(self.outcomes(), {"device": "failed: exit code 3",
                                           "nccl": "failed: no test ran", "rates": "passed"})
        # A later call mends one, and the other still counts.
        self.program("cuda_device_gpu_test", TESTS.format(calls=self.calls))
        code, text = self.check("--only", "^device$")
        self.assertEqual(code, 1, text)
        self.assertEqual(self.outcomes()["device"], "passed")
        self.assertEqual(self.outcomes()["nccl"], "failed: no test ran")

    def test_what_there_is_no_time_for_is_said(self):
        code, text = self.check("--limit", "3", "--only", "^device$")
        self.assertEqual(code, 0, text)
        self.assertEqual(self.outcomes(), {"device": "not run: no time left (--only device)"})

    def test_a_step_that_hangs_is_ended(self):
        (self.root / "path" / "timeout").unlink()
        self.program("cuda_device_gpu_test", "#!/bin/bash\nexec sleep 100000\n")
        # Time enough to come to the step, and less than the step may take.
        code, text = self.check("--limit", "45", "--only", "^(device|rates)$")
        self.assertEqual(code, 1, text)
        self.assertRegex(self.outcomes()["device"], r"^failed: not done after \d+ s$")
        self.assertIn("no time left", self.outcomes()["rates"])

    def test_results_survive_a_signal(self):
        self.program("nccl_transport_gpu_test",
                     "#!/bin/bash\ntouch \"$0.began\"\nexec sleep 100000\n")
        process = self.start("--limit", str(LIMIT_S), "--only", "^(device|nccl|rates)$")
        began = self.root / "build" / "bin" / "nccl_transport_gpu_test.began"
        with job_limit.limited("the step"):
            while not began.exists() and process.poll() is None:
                time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        # The shell hears of the signal once the step has ended.
        subprocess.run(["pkill", "-P", str(process.pid), "timeout"], check=False)
        code, text = self.end(process)
        self.assertNotEqual(code, 0, text)
        self.assertEqual(self.outcomes()["device"], "passed")
        self.assertTrue((self.out / "gpu-nvidia-fake-80gb" / "device.log").exists())

    def test_a_build_without_gpu_tests_fails(self):
        for name in ("cuda_device_gpu_test", "gpu_bench", "cuda_transports_gpu_mpi"):
            path = self.root / "build" / "bin" / name
            text = path.read_text(encoding="utf-8")
            path.unlink()
            code, said = self.check()
            self.assertEqual(code, 1)
            self.assertIn(f"{name} is missing", said)
            self.program(name, text)

    def test_without_a_gpu_nothing_was_checked(self):
        self.tool("nvidia-smi", "#!/bin/bash\nexit 9\n")
        code, text = self.check()
        self.assertEqual(code, 77)
        self.assertIn("no GPU", text)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
