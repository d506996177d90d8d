#!/usr/bin/env python3
"""scripts/nodes/job_limit.py: exit codes, whose stacks it shows, and what it leaves.

  job_limit_test.py JOB_LIMIT
"""
import os
import pathlib
import re
import secrets
import signal
import subprocess
import sys
import tempfile
import time
import unittest

SCRIPT = pathlib.Path(sys.argv.pop(1)).resolve()
sys.dont_write_bytecode = True
sys.path.insert(0, str(SCRIPT.parent))
import job_limit  # noqa: E402  (of scripts/nodes)

LIMIT_S = 240  # only against hanging


def command_lines():
    """Those of all processes that run."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found.append(path.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
        except OSError:  # it has ended
            continue
    return found


class JobLimitTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="job-limit-")
        self.addCleanup(folder.cleanup)
        self.began = pathlib.Path(folder.name) / "began"
        os.mkfifo(self.began)
        self.name = f"86400.{secrets.randbelow(10**9)}"  # in no other command line
        # Grandchildren that ignore SIGTERM. One has left its session.
        deaf = f"trap '' TERM; setsid sleep {self.name}1 & sleep {self.name}2 & wait"
        self.script = f"sh -c \"({deaf}) & echo >{self.began}; wait\"; :"

    def start(self, seconds, *command):
        return subprocess.Popen([str(SCRIPT), str(seconds), *command], text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def end(self, job):
        out, err = job.communicate(timeout=LIMIT_S)
        left = [line for line in command_lines() if self.name in line]
        self.assertEqual(left, [], err)
        return job.returncode, out, err

    def run_all(self, seconds, *command):
        return self.end(self.start(seconds, *command))

    def wait_for_grandchildren(self):
        """Until both programs run."""
        with open(self.began, encoding="ascii") as file:
            file.readline()
        deadline = time.monotonic() + LIMIT_S
        while len([line for line in command_lines()
                   if re.fullmatch(rf"sleep {self.name}[12] ", line)]) < 2:
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.01)

    def test_exit_codes_are_passed_on(self):
        self.assertEqual(self.run_all(LIMIT_S, "sh", "-c", "echo said; exit 7"), (7, "said\n", ""))
        self.assertEqual(self.run_all(LIMIT_S, "sh", "-c", "kill -9 $$"), (137, "", ""))
        self.assertEqual(self.run_all(LIMIT_S, "true"), (0, "", ""))
        code, _, err = self.run_all(LIMIT_S, "/no/such/program")
        self.assertEqual(code, 127)
        self.assertIn("/no/such/program", err)
        for wrong in ([], ["5"], ["soon", "true"], ["0", "true"]):
            done = subprocess.run([str(SCRIPT), *wrong], stderr=subprocess.PIPE, text=True,
                                  check=False)
            self.assertEqual(done.returncode, 2)
            self.assertIn("usage: job_limit.py", done.stderr)

    def test_input_is_passed_on(self):
        job = subprocess.run([str(SCRIPT), str(LIMIT_S), "cat"], input="a word", text=True,
                             stdout=subprocess.PIPE, timeout=LIMIT_S, check=True)
        self.assertEqual(job.stdout, "a word")

    def test_the_limit(self):
        code, _, err = self.run_all(1, "sh", "-c", f"trap '' TERM; sleep {self.name}; :")
        self.assertEqual(code, 124, err)
        self.assertIn("job_limit: sh has not ended after 1 s; the stacks of its processes:\n", err)
        self.assertIn(f": sh -c trap '' TERM; sleep {self.name}; :\n", err)
        self.assertRegex(err, "#0|elfutils")

    def test_signals_end_all(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            ignores = number == signal.SIGTERM
            job = self.start(LIMIT_S, "sh", "-c",
                             self.script if ignores else self.script.replace("trap ''", ":"))
            self.wait_for_grandchildren()
            job.send_signal(number)
            code, _, err = self.end(job)
            self.assertEqual(code, 128 + number, err)
            self.assertEqual("--- process " in err, number == signal.SIGTERM, err)
            if number == signal.SIGTERM:
                for word in (f"sleep {self.name}1", f"sleep {self.name}2"):
                    self.assertIn(word, err)

    def test_what_is_left_is_named_and_killed(self):
        code, _, err = self.run_all(LIMIT_S, "sh", "-c",
                                    f"trap '' TERM; setsid sleep {self.name} & exit 3")
        self.assertEqual(code, 3)
        self.assertRegex(err, rf"job_limit: process \d+ is left, and is killed: .*{self.name}")

    def test_a_run_that_ends(self):
        done = job_limit.run(["sh", "-c", "cat; exit 5"], given="word", stdout=subprocess.PIPE,
                             text=True)
        self.assertEqual((done.returncode, done.stdout), (5, "word"))
        with self.assertRaises(subprocess.CalledProcessError):
            job_limit.run(["false"], check=True)

    def test_a_run_that_does_not_end(self):
        with self.assertRaises(job_limit.Late) as late:
            job_limit.run(["sh", "-c", f"echo a word; setsid sleep {self.name}; :"], 2,
                          stdout=subprocess.PIPE, text=True)
        self.assertIn(f"sleep {self.name}", str(late.exception))
        self.assertEqual([line for line in command_lines() if self.name in line], [])

    def test_a_block_with_a_limit(self):
        with job_limit.limited("nothing"):
            pass
        with self.assertRaises(job_limit.Late), job_limit.limited("a reader", 1):
            with subprocess.Popen(["sleep", self.name], stdout=subprocess.PIPE) as job:
                self.assertEqual(job.stdout.read(), b"")
        self.assertEqual([line for line in command_lines() if self.name in line], [])


if __name__ == "__main__":
    unittest.main(verbosity=2)
