"""Judges a job of chaos.py by what its ranks say: all right, or an error that names the cause."""
import collections
import re

import chaos_worlds
from chaos_launch import tail

LIMIT_S = 500  # of a job; sessions and streams give up long before
KILL_SLACK_S = 120  # a machine with fewer cores than ranks, and a build beside them
MEETING = ("Join", "MakeFabric")


class Outcome:
    """What became of one job."""

    def __init__(self, seed, job):
        self.seed = seed
        self.job = job
        self.problems = []
        self.counts = collections.Counter()

    def bad(self, kind, text):
        self.problems.append(f"{kind}: {text}")


class Judge:
    """Of one job. `killed`: by rank, whether it had met the others. `store_ended`: of a world's
    store, "before" or "after" all had met, if it has."""

    def __init__(self, job, killed, store_ended, outcome, folder):
        self.job = job
        self.killed = killed
        self.store_ended = store_ended
        self.outcome = outcome
        self.folder = folder

    def judge(self, results):
        counts, job, killed = self.outcome.counts, self.job, self.killed
        counts[f"over {job['wire']}"] += 1
        for kind in job["kinds"]:
            counts[f"with {kind}"] += 1
        if killed:
            counts["a rank killed in time"] += 1
        for rank in range(job["ranks"]):
            if rank in killed:
                continue
            if results.get(rank) is None:
                kind = "hung" if results["late"] else "crashed"
                self.outcome.bad(kind, f"rank {rank} left no word; {results['stacks']}"
                                       f"{tail(self.folder)}")
                continue
            self.judge_rank(rank, results[rank])
        problems = self.outcome.problems
        if not killed and results["exit"] not in (0, None) and not problems:
            errors = any(result["errors"] for rank, result in results.items()
                         if isinstance(rank, int))
            if not errors:
                self.outcome.bad("crashed",
                                 f"it ended with {results['exit']}; {tail(self.folder)}")
        if results["late"] and not problems:
            self.outcome.bad("hung", f"after {LIMIT_S} s; {results['stacks']}{tail(self.folder)}")

    def judge_rank(self, rank, result):
        for name, count in result["counts"].items():
            self.outcome.counts[f"checked: {name}"] += count
        for wrong in result["wrong"]:
            self.outcome.bad("wrong", f"rank {rank}: {wrong}")
        if result["growth_bytes"] > result["allowed_bytes"]:
            self.outcome.bad("over budget", f"rank {rank} grew by {result['growth_bytes']} of "
                                            f"{result['allowed_bytes']} bytes allowed, "
                                            f"{result['shared_growth_bytes']} of them shared")
        for error in result["errors"]:
            self.judge_error(rank, error)
        if (self.killed
                and result["close_seconds"] > self.job["session"]["timeout_s"] + KILL_SLACK_S):
            self.outcome.bad("hung", f"Close of rank {rank} took {result['close_seconds']:.0f} s")

    def judge_error(self, rank, error):
        """An error is right if the job has a cause for it, and it names the cause."""
        job, counts = self.job, self.outcome.counts
        text = f"rank {rank}, {error['where']}: {error['code']}: {error['message']}"
        # By the script. Where a session has failed, its ranks close streams without a word.
        if ("early closes" in job["kinds"]
                and "closed the stream before its end" in error["message"]):
            counts["told that others closed early"] += 1
            return
        of_storage = job["storage_fails"] and re.match(r"(OpenStream|Next)", error["where"])
        if of_storage and re.search(r"part-\d+\.bin|item \d+|read|bytes", error["message"]):
            counts["errors of storage"] += 1
            return
        if "world" in job and self.is_of_store(error):
            counts["errors after the store's end"] += 1
            return
        if self.killed:
            # Before ranks have met, nobody knows whose process is whose: MPI only tells that not
            # all have come.
            if (not any(self.killed.values()) and error["where"] == "MakeMpiFabric"
                    and error["code"] == "DEADLINE_EXCEEDED"
                    and "not all of its ranks have called, or one has ended" in error["message"]):
                counts["errors after a kill before the ranks had met"] += 1
                return
            counts["errors after a kill"] += 1
            if not any(self.names(one, error["message"]) for one in self.killed):
                self.outcome.bad("not named", f"rank {sorted(self.killed)} was killed: {text}")
            elif error["code"] == "CANCELLED":  # which is for what the rank itself has given up
                self.outcome.bad("error", text)
            return
        self.outcome.bad("not named" if of_storage else "error", text)

    def names(self, rank, message):
        if re.search(rf"rank {rank}\b|ranks? [-\d, ]*\b{rank}\b", message):
            return True
        return ("world" in self.job
                and re.search(rf"\b{chaos_worlds.name_of(self.job, rank)}\b", message) is not None)

    def is_of_store(self, error):
        """Whether it tells of a store that ended before all had met, or of those who were told."""
        served = not self.job["world"]["store_apart"] and self.killed.get(0) is False
        if self.store_ended != "before" and not served:
            return False
        if error["where"] in MEETING and re.search(r"\bstore\b", error["message"]):
            return True
        # Those that have met say who has not.
        return any(self.names(rank, error["message"]) for rank in range(self.job["ranks"]))


def judge_second(rank, told, is_taken, first_pid, outcome):
    """A second member of a rank is told who has the place."""
    outcome.counts["second members"] += 1
    if told is None:
        outcome.bad("second member", f"of rank {rank} crashed")
    elif told["code"] == "ALREADY_EXISTS":
        # The first one may leave before the store is asked who it is.
        if is_taken and f"process {first_pid} " not in told["message"]:
            outcome.bad("second member", f"of rank {rank} is not told of process {first_pid}: "
                                         f"{told['message']}")
    elif is_taken or told["code"] not in ("OK", "UNAVAILABLE", "DEADLINE_EXCEEDED"):
        outcome.bad("second member", f"of rank {rank}: {told}")
