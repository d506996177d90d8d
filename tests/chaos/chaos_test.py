#!/usr/bin/env python3
"""The judge of random jobs finds what is wrong, and takes what is right.

  chaos_test.py FOLDER_OF_SCRIPTS
"""
import pathlib
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
SCRIPTS = pathlib.Path(sys.argv.pop(1))
sys.path[:0] = [str(SCRIPTS / "chaos"), str(SCRIPTS / "nodes")]
import chaos_epochs  # noqa: E402  (of scripts/chaos)
import chaos_jobs  # noqa: E402
from chaos_elastic import ElasticWorld, Member  # noqa: E402
from chaos_judge import Judge, Outcome, judge_second  # noqa: E402

GOOD = {"counts": {}, "wrong": [], "growth_bytes": 0, "allowed_bytes": 1, "shared_growth_bytes": 0,
        "errors": [], "close_seconds": 0}


def world_job(**changes):
    job = {"ranks": 3, "wire": "world_tcp", "kinds": [], "storage_fails": False,
           "session": {"timeout_s": 4},
           "world": {"store_apart": True, "roles": [["trainer", 1], ["server", 2]]}}
    return {**job, **changes}


class OfJobs(unittest.TestCase):
    """One job of three ranks, of which rank 0 says something."""

    def problems(self, result, killed=(), store_ended=None, job=None, exit_code=0):
        job = job or world_job()
        outcome = Outcome(1, job)
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "log").touch()
            results = {rank: GOOD for rank in range(3) if rank not in killed}
            results.update({0: {**GOOD, **result}, "exit": exit_code, "late": False,
                            "stacks": ""})
            Judge(job, dict.fromkeys(killed, True), store_ended, outcome, folder).judge(results)
        return [problem.split(":")[0] for problem in outcome.problems]

    def error(self, message, where="MakeFabric", code="UNAVAILABLE"):
        return {"errors": [{"where": where, "code": code, "message": message}]}

    def test_what_is_right(self):
        self.assertEqual(self.problems({}), [])

    def test_wrong_elements(self):
        self.assertEqual(self.problems({"wrong": ["an element"]}), ["wrong"])

    def test_memory(self):
        self.assertEqual(self.problems({"growth_bytes": 2}), ["over budget"])

    def test_an_error_without_a_cause(self):
        self.assertEqual(self.problems(self.error("rank 1 has ended")), ["error"])

    def test_a_crash(self):
        self.assertEqual(self.problems({}, exit_code=-11), ["crashed"])

    def test_a_kill_is_to_be_named(self):
        for message in ("rank 2, process 7, has ended", "no word from ranks 1, 2 for 4s",
                        "server 1 (process 7 on here) was lost"):
            self.assertEqual(self.problems(self.error(message), killed=[2]), [], message)
        for message in ("rank 1, process 7, has ended", "server 0 (process 7 on here) was lost",
                        "a peer has ended"):
            self.assertEqual(self.problems(self.error(message), killed=[2]), ["not named"], message)

    def test_nobody_else_has_given_up(self):
        told = self.error("bucket 3: from rank 2: given up", where="Wait", code="CANCELLED")
        self.assertEqual(self.problems(told, killed=[2]), ["error"])

    def test_a_store_that_ends_too_early(self):
        gone = self.error("the store at tcp://127.0.0.1:1 has ended")
        self.assertEqual(self.problems(gone, store_ended="before"), [])
        self.assertEqual(self.problems(gone, store_ended="after"), ["error"])
        self.assertEqual(self.problems(gone), ["error"])
        self.assertEqual(self.problems(self.error("a bug"), store_ended="before"), ["error"])

    def test_second_members(self):
        def kinds(told, is_taken=True):
            outcome = Outcome(1, {})
            judge_second(1, told, is_taken, 77, outcome)
            return len(outcome.problems)
        self.assertEqual(kinds({"code": "ALREADY_EXISTS", "message": "process 77 on here"}), 0)
        self.assertEqual(kinds({"code": "ALREADY_EXISTS", "message": "process 78 on here"}), 1)
        self.assertEqual(kinds({"code": "OK", "message": ""}), 1)
        self.assertEqual(kinds({"code": "OK", "message": ""}, is_taken=False), 0)
        self.assertEqual(kinds(None), 1)


class OfEpochs(unittest.TestCase):
    """A world of three members with the process numbers 70, 71 and 72, without processes."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        drawn = {**chaos_epochs.make(1), "again": False, "served": False, "host": "127.0.0.1"}
        self.world = ElasticWorld(drawn, self.folder.name, "/no/such/folder")

        class Process:
            def __init__(self, pid):
                self.pid = pid

            def poll(self):
                return None
        for pid in (70, 71, 72):
            member = Member(f"server {pid - 70}", Process(pid), None)
            member.epoch = [70, 71, 72]
            self.world.members.append(member)
            self.world.by_pid[pid] = member

    def tearDown(self):
        self.world.members = []
        self.world.end()
        self.folder.cleanup()

    def problems(self, word):
        self.world.problems = []
        self.world.judge(self.world.members[0], word)
        return [problem.split(":")[0] for problem in self.world.problems]

    def failed(self, message):
        return {"say": "failed", "number": 1, "code": "UNAVAILABLE", "message": message}

    def test_wrong_elements(self):
        self.assertEqual(self.problems({"say": "wrong", "what": "an element"}), ["wrong"])

    def test_a_failure_takes_a_cause(self):
        self.assertEqual(self.problems(self.failed("rank 2 has ended")), ["error"])
        self.world.members[2].hurt = "killed"
        self.assertEqual(self.problems(self.failed("rank 2 has ended")), [])
        self.assertEqual(self.problems(self.failed("no word from ranks 1, 2 for 5s")), [])
        self.assertEqual(self.problems(self.failed("rank 1 has ended")), ["not named"])

    def test_a_lost_world_takes_a_cause(self):
        lost = {"say": "joins anew", "code": "UNAVAILABLE",
                "message": "server 2 (process 72 on here) was lost"}
        self.assertEqual(self.problems(lost), ["error"])
        self.world.members[1].hurt = "stopped"
        self.assertEqual(self.problems(lost), ["error"])
        self.world.members[2].hurt = "stopped"
        self.assertEqual(self.problems(lost), [])
        self.world.members[2].hurt = None
        self.world.restarts = 1
        self.assertEqual(self.problems(lost), [])

    def test_who_leaves_a_world_because_of_another_is_a_cause(self):
        self.world.world["again"] = True
        lost = {"say": "joins anew", "code": "UNAVAILABLE",
                "message": "server 2 (process 72 on here): it has left"}
        self.assertEqual(self.problems(lost), ["error"])
        self.world.members[1].hurt = "killed"
        self.assertEqual(self.problems(lost), [])

    def test_the_end_of_a_member(self):
        taken = {"say": "ended", "code": "ALREADY_EXISTS",
                 "message": "server 0 cannot join: server 0 (process 9 on here) is there"}
        self.assertEqual(self.problems(taken), ["error"])
        self.world.members[0].hurt = "stopped"
        self.assertEqual(self.problems(taken), [])

    def test_one_epoch_of_all(self):
        def say(member, *words):
            member.said += words
        whole = {"say": "epoch", "number": 3, "members": [70, 71, 72]}
        from_here = dict.fromkeys(self.world.members, 0)
        for member in self.world.members:
            say(member, whole)
        for member in self.world.members:
            self.assertFalse(self.world.is_settled(from_here))
            say(member, {"say": "done", "number": 3})
        self.assertTrue(self.world.is_settled(from_here))
        self.assertFalse(self.world.is_settled(dict.fromkeys(self.world.members, 2)))


class OfSeeds(unittest.TestCase):
    def test_a_seed_is_one_job(self):
        for seed in range(40):
            self.assertEqual(chaos_jobs.make(seed), chaos_jobs.make(seed))
            self.assertEqual(chaos_epochs.make(seed), chaos_epochs.make(seed))

    def test_a_third_are_worlds(self):
        worlds = sum("world" in chaos_jobs.make(seed) for seed in range(300))
        self.assertTrue(60 < worlds < 140, worlds)

    def test_the_wire_that_a_failure_names_gives_the_same_job(self):
        for seed in range(100):
            for has_mpi in (False, True):
                job = chaos_jobs.make(seed, None, has_mpi)
                self.assertEqual(chaos_jobs.make(seed, job["wire"]), job)


if __name__ == "__main__":
    unittest.main()
