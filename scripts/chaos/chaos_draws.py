"""What random jobs of chaos_jobs.py have in common: draws for each rank, layouts, transfers."""
INTEGERS = ("i32", "i64")
FLOATS = ("f64", "f32", "bf16")


class Draws:
    """Adds to the job `self.job`, of `self.ranks` ranks, what `self.rng` says."""

    # --- What ranks draw.

    def of_ranks(self, draw):
        return [draw() for _ in range(self.ranks)]

    def delays(self, most_ms, share=0.3):
        return self.of_ranks(
            lambda: self.rng.randint(0, most_ms) if self.rng.random() < share else 0)

    def op(self, name, **fields):
        self.job["ops"].append(dict(fields, op=name))

    # --- Layouts.

    def layout(self, dims, partial=()):
        rng = self.rng
        order = list(range(self.ranks))
        rng.shuffle(order)
        sizes = rng.choice([s for s in ([1], [2], [3], [4], [5], [6], [2, 2], [2, 3], [3, 2],
                                        [1, 2], [2, 1, 2])
                            if product(s) <= self.ranks])
        placements = []
        op = rng.choice(partial) if partial else None
        for _ in sizes:
            kind = rng.random()
            if op and kind < 0.5:
                placements.append(f"P({op})")
            elif kind < 0.3:
                placements.append("R")
            elif kind < 0.85:
                placements.append(f"S({rng.randrange(dims)})")
            else:
                placements.append(f"SS({rng.randrange(dims)},{rng.randint(2, 3)})")
        return {"sizes": sizes, "ranks": order[:product(sizes)], "placements": placements}

    def shape(self, most_elements):
        dims = self.rng.randint(1, 3)
        elements = max(1, int(most_elements * self.rng.random() ** 3))
        shape = []
        for _ in range(dims - 1):
            shape.append(self.rng.randint(1, max(1, min(64, elements))))
            elements = max(1, elements // shape[-1])
        return shape + [elements]

    # --- Transfers.

    def add_transfer(self, most_elements):
        rng = self.rng
        tensors = []
        windows = rng.randint(1, 3)
        for i in range(rng.randint(1, 4)):
            shape = self.shape(most_elements)
            partial = ("sum", "max", "min") if rng.random() < 0.2 else ()
            if partial:
                src = dst = rng.choice(INTEGERS)
            elif rng.random() < 0.3:
                src, dst = rng.choice(FLOATS), rng.choice(FLOATS)
            else:
                src = dst = rng.choice(INTEGERS + FLOATS + ("u8",))
            tensors.append({"name": f"t{i}", "shape": shape, "src_dtype": src, "dst_dtype": dst,
                            "src": self.layout(len(shape), partial),
                            "dst": self.layout(len(shape)), "window": rng.randrange(windows)})
        self.job["transfers"].append({"priority": rng.randrange(4), "tensors": tensors})
        self.op("compile", transfer=len(self.job["transfers"]) - 1)

    def add_runs(self, transfers):
        rng = self.rng
        cancelled = False
        for _ in range(rng.randint(1, 5)):
            late = rng.random() < 0.35
            # Memory that never comes is for runs that are cancelled.
            withhold = late and rng.random() < 0.2
            self.op("run", transfer=rng.choice(transfers), seed=rng.getrandbits(32),
                    events=rng.random() < 0.5, late=self.of_ranks(lambda: late and
                                                                  rng.random() < 0.7),
                    withhold=self.of_ranks(lambda: withhold and rng.random() < 0.5),
                    supply_ms=self.delays(60, 0.5),
                    pad=self.of_ranks(lambda: rng.choice([0, 0, 3])),
                    transposed=self.of_ranks(lambda: rng.random() < 0.2))
            if withhold or rng.random() < 0.1:
                if rng.random() < 0.5:
                    self.op("sleep", ms=self.delays(40))
                self.op("cancel", back=0)
                cancelled = True
            if rng.random() < 0.3:
                self.op("sleep", ms=self.delays(100, 0.2))
        if cancelled and "cancels" not in self.job["kinds"]:
            self.job["kinds"].append("cancels")


def product(sizes):
    total = 1
    for size in sizes:
        total *= size
    return total
