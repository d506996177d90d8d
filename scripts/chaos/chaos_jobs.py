"""Makes random jobs for chaos.py: plain data that every rank reads (tests/chaos)."""
import copy
import random

import chaos_draws
import chaos_worlds
from chaos_draws import FLOATS, INTEGERS

MPI_WIRES = ("tcp", "shm", "direct")
WORLD_WIRES = ("world_direct", "world_tcp", "world_ucx")
WIRES = MPI_WIRES + WORLD_WIRES
WORLD_SHARE = 1 / 3  # of the jobs
KIB = 1024
# No rank has no word for so long only because the machine has other work. A job of which a rank is
# killed may have to wait for it, where MPI keeps operations with that rank.
TIMEOUT_S = 120
KILL_TIMEOUT_S = 20


def make(seed, wire=None, has_mpi=True):
    """The job of a seed, over `wire` if one is given. Without MPI every job is a world."""
    rng = random.Random(seed)
    chosen = rng.choice(MPI_WIRES)
    world_rng = random.Random(f"{seed}/world")
    is_world = world_rng.random() < WORLD_SHARE or not has_mpi
    world_wire = world_rng.choice(WORLD_WIRES)
    wire = wire or (world_wire if is_world else chosen)
    job = Maker(rng, wire).job
    job["seed"] = seed
    if wire in WORLD_WIRES:
        chaos_worlds.add_world(job, world_rng)
    return job


def verification_of(job):
    """One rank that loads what is left of the first checkpoint."""
    alone = copy.deepcopy(job)
    whole = {"sizes": [1], "ranks": [0], "placements": ["R"]}
    for checkpoint in alone["checkpoints"]:
        for tensor in checkpoint["tensors"]:
            tensor["load"] = whole
    # A rank may have been killed before any save was done.
    load = dict(io_options(random.Random(job["seed"]), TIMEOUT_S), op="load", checkpoint=0,
                scheme="file", may_be_absent=True, seeds=job["seeds_of_saves"])
    alone.update(ranks=1, faults=[], kills=False, transfers=[], streams=[], datasets=[], ops=[load])
    if "world" in alone:
        alone["world"] = chaos_worlds.quiet_world([["member", 1]], "auto")
    else:
        alone["wire"] = "shm"
    alone["session"]["progress"] = [False]
    alone["session"]["timeout_s"] = TIMEOUT_S
    return alone


def io_options(rng, timeout_s):
    piece = rng.choice([4, 16, 64, 256]) * KIB
    return {"piece_bytes": piece, "budget_bytes": piece * rng.choice([8, 16, 64]) + 64 * KIB,
            "slots": rng.choice([0, 0, 2, 4]), "shard_bytes_max": rng.choice([64, 256, 4096]) * KIB,
            "timeout_s": timeout_s}


class Maker(chaos_draws.Draws):
    """Draws one job."""

    def __init__(self, rng, wire):
        self.rng = rng
        self.ranks = rng.randint(2, 6)
        self.cut = set()  # data sets that a job cuts short
        self.kills = rng.random() < 0.12
        self.timeout_s = KILL_TIMEOUT_S if self.kills else TIMEOUT_S
        bucket = 2 ** rng.randint(10, 20)
        self.job = {
            "ranks": self.ranks, "wire": wire, "kills": self.kills, "storage_fails": False,
            "verify": False, "seeds_of_saves": [], "kinds": [], "faults": [], "transfers": [],
            "streams": [], "datasets": [], "checkpoints": [], "ops": [],
            "session": {
                "bucket_bytes": bucket, "budget_buckets": rng.choice([1, 1, 2, 3, 4, 8, 16]),
                "max_in_flight": rng.choice([0, 0, 1, 2, 4]), "timeout_s": self.timeout_s,
                "direct": wire in ("direct", "world_direct"), "relay": rng.random() < 0.85,
                "ranks_per_node": 0 if wire == "direct" else rng.choice([0, 0, 0, 1, 2]),
                "progress": [rng.random() < 0.3 for _ in range(self.ranks)]
                if rng.random() < 0.4 else [False] * self.ranks,
            },
        }
        parts = [kind for kind in ("transfers", "streams", "checkpoints") if rng.random() < 0.6]
        parts = parts or ["transfers"]
        self.job["kinds"] = list(parts)
        self.script(parts)
        self.misfortune()

    # --- Streams.

    def add_dataset(self, items, item_bytes):
        self.job["datasets"].append({"dir": f"data{len(self.job['datasets'])}", "items": items,
                                     "item_bytes": item_bytes, "seed": self.rng.getrandbits(32),
                                     "files": self.rng.randint(1, 4)})
        return len(self.job["datasets"]) - 1

    def add_stream(self):
        rng = self.rng
        items = rng.randint(5, 200)
        item_bytes = rng.choice([64, 1000, 4096, 16 * KIB, 40000, 128 * KIB])
        if rng.random() < 0.15:
            # So many that a rank which runs ahead of the gate is seen in the kernel's counts.
            items, item_bytes = rng.randint(600, 1200), rng.choice([16 * KIB, 32 * KIB, 60000])
        # Datasets of equal shape, so that a stream can be opened again with other contents.
        datasets = [self.add_dataset(items, item_bytes) for _ in range(2)]
        shared = rng.random() < 0.5
        steps = rng.choice([1, 2, 3]) if shared else self.ranks
        selections = [[rank % steps, steps] for rank in range(self.ranks)]
        piece = rng.choice([0, 4096, 16 * KIB])
        generated = rng.random() < 0.25
        faults, latency = "", 0
        if not generated and rng.random() < 0.4:
            latency = rng.choice([1, 5, 20])
            faults = rng.choice(["", "", "transient:0.05", "short:0.03", "hang:0.01",
                                 "transient:0.02,hang:0.005", "permanent:0.01"])
        if "permanent" in faults or "short" in faults:
            self.job["storage_fails"] = True
        self.job["streams"].append({
            "source": "generator" if generated else rng.choice(["file", "buffered", "mmap"]),
            "selections": selections, "disjoint": not shared, "shuffle": rng.random() < 0.3,
            "seed": rng.getrandbits(32), "epochs": 1,
            "budget_bytes": max(item_bytes + 8192, piece) * rng.choice([4, 8, 32]) + 256 * KIB,
            "slots": rng.choice([0, 0, 1, 2, 8]), "piece_bytes": 0 if generated else piece,
            "device_buffers": rng.randint(2, 4), "batch_items": rng.choice([1, 1, 2, 5]),
            "in_order": rng.random() < 0.7, "exchange": rng.random() < 0.8,
            "hedge": rng.random() < 0.2, "latency_ms": latency, "jitter": 0.5, "faults": faults,
            "request_timeout_s": 4 if "hang" in faults else 100, "timeout_s": self.timeout_s,
        })
        stream = self.job["streams"][-1]
        stream["latency_ms"] = min(latency, self.latency_within(stream, items, item_bytes))
        return len(self.job["streams"]) - 1, datasets

    def latency_within(self, stream, items, item_bytes):
        """What lets a rank read all its items in a fifth of the timeout and in 6 s, in ms.

        A rank whose storage fails goes on to the next operation, and waits there for those that
        still read.
        """
        pieces = -(-item_bytes // stream["piece_bytes"]) if stream["piece_bytes"] else 1
        reads = -(-items // stream["selections"][0][1]) * pieces
        return min(self.timeout_s, 30) * 200 * (stream["slots"] or 4) // reads

    # --- Checkpoints.

    def add_checkpoint(self):
        rng = self.rng
        tensors = []
        for i in range(rng.randint(1, 5)):
            shape = self.shape(200_000)
            tensors.append({"name": f"layer.{i}.weight", "shape": shape,
                            "dtype": rng.choice(INTEGERS + FLOATS + ("u8",)),
                            "save": self.layout(len(shape)), "load": self.layout(len(shape))})
        self.job["checkpoints"].append({"dir": f"checkpoint{len(self.job['checkpoints'])}",
                                        "tensors": tensors})
        return len(self.job["checkpoints"]) - 1

    def save_and_load(self, checkpoint):
        rng = self.rng
        seed = rng.getrandbits(32)
        self.job["seeds_of_saves"].append(seed)
        self.op("save", checkpoint=checkpoint, seed=seed, **io_options(rng, self.timeout_s))
        if rng.random() < 0.7:
            self.op("load", checkpoint=checkpoint, scheme=rng.choice(["file", "buffered", "mmap"]),
                    seeds=[seed], may_be_absent=False, **io_options(rng, self.timeout_s))

    # --- The order of it all.

    def script(self, parts):
        rng = self.rng
        transfers = []
        if "transfers" in parts:
            large = rng.random() < 0.08
            for _ in range(rng.randint(1, 3)):
                self.add_transfer(1_000_000 if large else 60_000)
                transfers.append(len(transfers))
        checkpoint = self.add_checkpoint() if "checkpoints" in parts else None
        streams = []
        if "streams" in parts:
            streams = [self.add_stream() for _ in range(rng.randint(1, 2))]
        opened = {}
        for _ in range(rng.randint(2, 7)):
            acts = []
            if transfers:
                acts += ["runs"] * 2
            if streams:
                acts += ["streams"] * 2
            if checkpoint is not None:
                acts.append("checkpoint")
            act = rng.choice(acts)
            if act == "runs":
                self.add_runs(transfers)
                # Streams go on while runs are in flight.
                for stream in list(opened):
                    if rng.random() < 0.5:
                        self.take(stream, rng.randint(1, 10))
                self.op("finish")
            elif act == "checkpoint":
                self.save_and_load(checkpoint)
            else:
                self.stream_act(streams, opened)
        for stream in list(opened):
            self.take(stream, -1)
            self.op("close", stream=stream)
        for stream, datasets in streams:
            if stream not in opened and datasets[0] not in self.cut:
                self.op("open", stream=stream, dataset=datasets[0], resume=False)
                self.take(stream, -1)
                self.op("close", stream=stream)

    def take(self, stream, batches, apart=False):
        # Ranks that share items go no further apart than a window, unless they close next.
        spec = self.job["streams"][stream]
        apart = apart or spec["disjoint"] or not spec["exchange"]
        self.op("take", stream=stream,
                batches=self.of_ranks(lambda: self.rng.randint(0, batches) if apart and batches > 0
                                      else batches),
                pause_ms=self.delays(250, 0.25))

    def stream_act(self, streams, opened):
        rng = self.rng
        stream, datasets = rng.choice(streams)
        if stream not in opened:
            whole = [dataset for dataset in datasets if dataset not in self.cut]
            if whole:
                opened[stream] = rng.choice(whole)
                self.op("open", stream=stream, dataset=opened[stream], resume=False)
            return
        kind = rng.random()
        self.take(stream, rng.randint(1, 30), apart=kind < 0.45)
        spec = self.job["streams"][stream]
        if kind < 0.45:
            # Closed early by ranks that stand apart, and opened again: elsewhere, or further on.
            whole = [dataset for dataset in datasets if dataset not in self.cut]
            resume = rng.random() < 0.5 and not spec["faults"] and opened[stream] in whole
            self.op("close", stream=stream)
            dataset = opened.pop(stream)
            if not whole:
                return
            opened[stream] = dataset if resume else rng.choice(whole)
            self.op("open", stream=stream, dataset=opened[stream], resume=resume)
            if "early closes" not in self.job["kinds"]:
                self.job["kinds"].append("early closes")
        elif kind < 0.52 and spec["source"] == "file" and not self.kills:
            dataset = self.job["datasets"][opened[stream]]
            self.cut.add(opened[stream])
            self.job["storage_fails"] = True
            self.op("truncate", stream=stream, dataset=opened[stream],
                    file=rng.randrange(dataset["files"]), bytes=rng.randrange(3) * 100)

    def misfortune(self):
        rng = self.rng
        if rng.random() < 0.4:
            self.job["kinds"].append("stopped ranks")
            for _ in range(rng.randint(1, 3)):
                rank = rng.randrange(self.ranks)
                at_s = rng.random() * 0.6
                self.job["faults"] += [
                    {"rank": rank, "at_s": at_s, "signal": "SIGSTOP"},
                    {"rank": rank, "at_s": at_s + 0.05 + rng.random() * 0.5, "signal": "SIGCONT"}]
        if self.kills:
            self.job["kinds"].append("a kill")
            self.job["faults"].append({"rank": rng.randrange(self.ranks),
                                       "at_s": rng.random() ** 2 * 1.0, "signal": "SIGKILL"})
            self.job["verify"] = bool(self.job["seeds_of_saves"])
        if self.job["storage_fails"]:
            self.job["kinds"].append("storage that fails")

