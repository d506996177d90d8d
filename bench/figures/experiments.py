"""What scripts/measure/measure.py measures: a name, a command, and what its ratios are of.

A command has {columns} of its cases. Programs are those of build/bin; `mpirun` and `spawn` are the
scripts. {dir} is a folder of shards, {url} the same behind nginx.
"""
import typing

import ways

MIB, GIB = 1 << 20, 1 << 30
PRESETS = [f"etha-{number}-{source}" for source in ("no_partial", "replicate_dp", "partial_dp")
           for number in range(1, 9)]


class Experiment(typing.NamedTuple):
    name: str
    minutes: float  # it takes about so many on two quiet cores
    rounds: int
    command: str
    key: str = "time_us"
    baseline: object = ""  # the way whose `key` is 1 in a `ratio`, or way -> that way
    cases: list = [{}]  # columns
    turns: typing.Callable = ways.stream  # (job, experiment, **case) -> calls
    labels: dict = {"": {}}  # {way of Sluice's: more columns}, each a turn
    more: typing.Callable = lambda **columns: {}  # more columns, out of those
    shards: tuple = (512, MIB, 64)  # items, bytes of an item, items of an object
    after: typing.Callable = None  # adds numbers to what a round has found
    quick: dict = {}  # {text of the command: what it is in a quick run}


def product(**columns):
    cases = [{}]
    for name, values in columns.items():
        cases = [{**case, name: value} for case in cases for value in values]
    return cases


def window(slots):
    """So many requests at once, of a MiB each, and room for the blocks of hedged reads."""
    return f"--slots {slots} --piece-bytes 1M --budget-bytes {slots * 9 // 8 + 1}M"


def stream(source, *words):
    return f"sluice-bench stream --source {source} " + " ".join(words)


def whole_windows(slots, items):
    """So that a run stops while its window is full: at its end a stream would be reading less. At
    least four windows, so that the second half does not begin with the first one, and an even
    number of them: where the latency is the bound, a window comes at once."""
    items = max(2, round(items / (2 * slots))) * 2 * slots
    return {"items": items, "epochs": (items + slots) // 512 + 1, "window": window(slots)}


def of_waves(latency_ms, consume_ms, **_):
    """The beginning, when nothing has come yet, is a 30th where the budget of 32 items is enough.
    Where it is the bound, 8 windows."""
    enough = latency_ms / 32 < consume_ms
    items = 256
    if enough:
        items = max(192, 30 * latency_ms / consume_ms) if latency_ms else 64
    items = -(-round(items) // 32) * 32
    return {"items": items, "epochs": -(-items // 256) + 1}


def of_slots(slots, latency_ms, **_):
    return whole_windows(slots, min(slots * {0: 64, 20: 30, 50: 16, 200: 6}[latency_ms], 4096))


def of_first_item(slots, latency_ms, **_):
    return (whole_windows(slots, 512) if latency_ms == 0 else
            {"items": 1, "epochs": 1, "window": window(slots)})


def add_bound(found, slots, **_):
    """min(B0, M / (L + s / B0)): B0 is the rate without latency, M the window, s an item."""
    base = found["0 ms"]["steady_gb_per_s"] * 1e9
    for label, own in found.items():
        latency_s = float(label.split()[0]) / 1e3
        most = min(base, slots * MIB / (latency_s + MIB / base))
        own["of_bound"] = own["steady_gb_per_s"] * 1e9 / most


def add_first_item(found, **_):
    """Over one round trip and the item's own transfer."""
    base = found.pop("0 ms")["steady_gb_per_s"] * 1e9
    for label, own in found.items():
        own["of_ideal"] = own["first_item_s"] / (float(label.split()[0]) / 1e3 + MIB / base)


def latencies(*found):
    return {f"{latency} ms": {"latency_ms": latency} for latency in found}


# How MPI moves the bytes.
PROGRAM_OF_WIRE = {
    "memory": "mpirun -np 4 sluice-bench reshard --compare-transports direct,mpi",
    "tcp": "env OMPI_MCA_btl=self,tcp mpirun -np 4 sluice-bench reshard --transport mpi"}
COMPARE = "scripts/measure/compare.py"
EXPERIMENTS = [
    Experiment("best-mpi", 13, 5, COMPARE + " best-mpi --ways isend,isend-packed,alltoallw,"
               "gather-broadcast", quick={"mpi --": "mpi --iters 1 --shape 64,64 --cases "
                                                    "etha-[16]-* --"}),
    Experiment("serial", 2.5, 5, "mpirun -np 16 sluice-bench reshard --shape 2048,2048 --tensors 2 "
               "--baseline serial --preset {preset} --memory {memory} -n {rounds}",
               cases=product(memory=("private", "shared"), preset=PRESETS), turns=ways.reshard,
               quick={"2048,2048": "64,64"}),
    Experiment("budget-24", 3, 5, COMPARE + " budgets",
               quick={"budgets": "budgets --iters 1 --shape 64,64 --cases etha-[16]-*"}),
    Experiment("budget-models", 4.5, 5, COMPARE + " budgets --models "
               "llama-3-8b:llama-3-8b-fsdp16-tp8dp2:4:4,"
               "deepseek-v3:deepseek-v3-pp2ep8-tp4dp4:8:5,"
               "qwen3-235b-a22b:qwen3-235b-a22b-tp2pp2ep4-tp8dp2:8:4",
               quick={"budgets": "budgets --iters 1", ":4:4,": ":64:1,", ":8:5": ":64:1",
                      ":8:4": ":64:1"}),
    Experiment("sizes", 2.5, 7, "mpirun -np 2 sluice-bench reshard --shape 256 -b 1K -e 1G -f 4 "
               "--src 1:R --dst 1@1:R --compare-transports direct,mpi --baseline isend,memcpy "
               "--memory {memory} -n {rounds}", cases=product(memory=("private", "shared")),
               turns=ways.reshard, quick={"1G": "1M"}),
    # More than 2 GiB is left out: 25 tensors of 8192 x 8192 take 6 GiB at each end, and what packs
    # them as much again.
    Experiment("squares", 4, 5, "{program} --src 2:S(0) --dst 2@2-3:S(1) --baseline "
               "isend,isend-packed,serial,alltoallw --shape {side},{side} --tensors {tensors} "
               "-n {rounds}",
               cases=[case for case in product(tensors=(1, 25), side=(512, 1024, 2048, 4096, 8192,
                                                                      16384),
                                               wire=("memory", "tcp"))
                      if 4 * case["side"] ** 2 * case["tensors"] <= 2 * GIB],
               turns=ways.reshard, quick={"4096,4096": "512,512"},
               more=lambda wire, **_: {"program": PROGRAM_OF_WIRE[wire]}),
    Experiment("tiny", 0.3, 11, "mpirun -np 2 sluice-bench reshard --shape 64 --tensors 10000 "
               "--src 1:R --dst 1@1:R --baseline serial,isend,alltoallw --memory private -n "
               "{rounds}", turns=ways.reshard),
    # A step of a trainer that takes 1 GiB/s. Without latency the loaders' own rate is looked for.
    Experiment("latency", 2, 5, stream(
        "buffered:{dir}", "--latency-ms {latency_ms} --consume-us {consume_us}", window(64),
        "--check none --baseline waves:8,serial,threads:8x4,threads:64x1"), "item_us", "sluice",
        product(latency_ms=(0, 20, 50, 200)), shards=(256, MIB, 64),
        more=lambda latency_ms, **_: {"consume_us": 1000 * (latency_ms > 0)}),
    Experiment("checkpoints", 2.5, 7, COMPARE + " checkpoints",
               quick={"checkpoints": "checkpoints --bytes 64M --no-torch"}),
    Experiment("two-nodes", 1.5, 7, "two_nodes --rate 1gbit sluice-bench reshard --preset {preset} "
               "--shape 4096,4096 --tensors 1 --compare-plans relay,naive -n {rounds}",
               cases=product(preset=("etha-1-no_partial", "etha-2-no_partial")),
               turns=ways.two_nodes, quick={"4096,4096": "256,256"}),
    Experiment("copies", 0.3, 41, "micro-bench --benchmark_filter='^Rows/.*/streaming:1/threads:1|"
               "^Cast/ratio_|NaiveCastRatio|FoldRatio/ratio_' --benchmark_format=json",
               turns=ways.copies, quick={"^Rows/.*/streaming:1/threads:1|^Cast/ratio_":
                                         "^Cast/ratio_f32_to_bf16/"}),
    Experiment("planning", 0.7, 5, "micro-bench plan --model deepseek-v3 --system "
               "deepseek-v3-512-512 --samples 64", turns=ways.planning, quick={"64": "4"}),
    # The first consumer asks for more than the budget brings at 200 ms, the second one never.
    Experiment("waves", 8, 5, stream(
        "buffered:{dir}", "--latency-ms {latency_ms} --consume-us {consume_ms}000", window(32),
        "--stop-items {items} --epochs {epochs} --check all --baseline "
        "warm,waves:8,serial,threads:8x4"), "item_us", "sluice",
        product(latency_ms=(0, 20, 50, 200), consume_ms=(2, 8)), more=of_waves,
        shards=(256, MIB, 64)),
    Experiment("slots", 7, 5, stream("{source}:{dir}", "--latency-ms {latency_ms} {window} "
                                     "--stop-items {items} --epochs {epochs} --check none"),
               cases=product(source=("buffered", "file"),
                             slots=(1, 2, 4, 8, 16, 32, 64, 128, 256, 512)),
               labels=latencies(0, 20, 50, 200), more=of_slots, after=add_bound),
    Experiment("hand-over", 1.5, 5, "micro-bench hand-over --seconds {seconds}", "wall_ns",
               lambda way: way.replace("queue", "stream"), product(processes=(1, 64)),
               turns=ways.hand_over,
               more=lambda processes: {"seconds": 3 if processes == 1 else 10},
               quick={"--seconds 3": "--seconds 0.5", "--seconds 10": "--seconds 0.5"}),
    # In the page cache, with a consumer that looks at each page and one that does not. Then not in
    # the page cache, with the first one.
    Experiment("mmap", 1.5, 5, stream("{source}:{dir}", "--read-ahead {read_ahead} --epochs "
                                      "{epochs} --check none --touch {touch}", window(16)),
               "cpu_s_per_gib", "buffered",
               [{"pages": "looked at", "epochs": 4, "touch": 1},
                {"pages": "not looked at", "epochs": 4, "touch": 0},
                {"pages": "cold", "epochs": 1, "touch": 1}],
               labels={"file": {"source": "file", "read_ahead": 1},
                       "buffered": {"source": "buffered", "read_ahead": 1},
                       "mmap": {"source": "mmap", "read_ahead": 1},
                       "mmap, no read-ahead": {"source": "mmap", "read_ahead": 0}}),
    # 1.5 GB/s of storage, 18 GB/s to an emulated device, and training that takes longest.
    # With the first step the trainer asks for more than storage brings.
    Experiment("stages", 1, 5, stream(
        "file:{dir}", "--latency-ms 43 --device emulated:18 --device-buffers 4 --consume-us "
        "{step_ms}000 --epochs 3 --progress-thread {thread} --check none --slots 8 --piece-bytes "
        "8M --budget-bytes 64M"), cases=product(step_ms=(4, 8, 15), thread=(0, 1)),
        shards=(32, 8 * MIB, 8), quick={"--epochs 3": "--epochs 1"}),
    # The times are constant, 7 : 2.5. Items are the same in each order.
    Experiment("generate", 1.5, 5, stream(
        "generator", "--items 150 --item-bytes 64K --generate-ms 7 --consume-us 2500 "
        "--generate-order {order} --progress-thread {thread} --baseline loop --check all"),
        "time_us", "loop", product(thread=(0, 1), order=("free", "after-update", "one-ahead")),
        after=ways.same_items, quick={"--items 150": "--items 20"}),
    Experiment("connect", 2, 11, "spawn -n 64 micro-bench connect --tensors {tensors} {stages} "
               "--rounds {rounds}", cases=product(tensors=(1000, 10000), stages=("", "--stages")),
               turns=ways.connect, quick={"-n 64": "-n 4"}),
    Experiment("wires", 14, 11, COMPARE + " wires --rate {rate}",
               cases=product(rate=("none", "10gbit")),
               quick={"wires": "wires --to 256K --iters 3"}),
    Experiment("worlds", 9, 11, "sluice-bench reshard --cases {presets} --check sample -n 3",
               "time_us", lambda way: "world," + way.split(",", 1)[1],
               product(rate=("one node", "none", "10gbit")), turns=ways.worlds),
    Experiment("members", 15, 11, "sluice-bench sync --tensors {tensors} --versions 100000",
               cases=[{"event": "kill", "processes": 64, "tensors": "5,48,40"},
                      {"event": "join", "processes": 4, "tensors": "32,4096,4096"}],
               turns=ways.members),
    # One read in a hundred takes ten times as long. The consumer takes a quarter of what the window
    # allows at this latency.
    Experiment("tails", 3, 5, stream(
        "{source}:{dir}", "--latency-ms 50 --consume-us 3125", window(64), "--epochs 8 --check "
        "none --seed {seed} {tail}"), "item_us", "untailed", product(source=("buffered", "file")),
        labels={"untailed": {"tail": "--hedge 0"},
                "hedged": {"tail": "--hedge 1 --tail-percent 1 --tail-factor 10"},
                "not hedged": {"tail": "--hedge 0 --tail-percent 1 --tail-factor 10"}},
        shards=(256, MIB, 64)),
    Experiment("pacing", 3, 3, stream("{source}:{dir}", "--latency-ms 50", window(64), "--epochs 8 "
                                      "--check none --consume-us {consume_us} --progress-thread "
                                      "{thread}"),
               cases=product(source=("buffered", "file")), turns=ways.pacing),
    Experiment("disk", 2.5, 9, stream("file:{dir}", "--epochs 5 --check none --slots 32 "
                                      "--piece-bytes {size} --budget-bytes {budget}"),
               "cpu_s_per_gib", "fio", product(size=(128 << 10, MIB, 4 * MIB)), turns=ways.disk,
               more=lambda size: {"budget": 37 * size}),
    Experiment("http", 2, 9, stream("{url}", "--connections {connections} --epochs 6 --check none "
                                    "{window}"),
               "gb_per_s", "curl", product(connections=(4, 16)), turns=ways.http,
               more=lambda connections: {"window": window(2 * connections)},
               quick={"--epochs 6": "--epochs 1"}),
    Experiment("memory", 0.5, 3, stream("{source}", "--budget-bytes {budget_mib}M --epochs 4 "
                                        "--check none"),
               cases=product(source=("file:{dir}", "{url}"), budget_mib=(16, 64, 256)),
               after=ways.of_allowed),
    Experiment("first-item", 3, 3, "mpirun -np {ranks} " + stream(
        "{source}:{dir}", "--latency-ms {latency_ms} {window} --stop-items {items} --epochs "
        "{epochs} --check none"),
        cases=product(source=("buffered", "file"), slots=(16, 64, 256, 512), ranks=(1, 4)),
        labels=latencies(0, 20, 50, 200), more=of_first_item, after=add_first_item),
]
