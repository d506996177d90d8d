"""What a random job of chaos.py has besides when it is a world: who meets where, and what befalls
the store and the members beyond the ranks' own misfortune."""
from chaos_store import hosts

STRANGERS = ("silent", "garbage", "zeros", "ones", "http", "echo", "reset", "crowd")
# Where the store may end before all have met, others wait in vain: so long.
SHORT_WAIT_S = 60
WAIT_S = 240


def quiet_world(roles, wires):
    """A world in which nothing happens."""
    ranks = sum(size for _, size in roles)
    return {"wires": wires, "roles": roles, "sizes_known": True, "store_apart": False,
            "keeps_world": [True] * ranks, "start_s": [0] * ranks, "seconds": [], "strangers": [],
            "store_fault": None, "wait_s": WAIT_S, "host": "127.0.0.1"}


def add_world(job, rng):
    """Makes a world of the job."""
    ranks = job["ranks"]
    trainers = rng.randint(1, ranks - 1)
    roles = rng.choice([[["member", ranks]],
                        [["trainer", trainers], ["server", ranks - trainers]]])
    wires = {"world_direct": rng.choice(["auto", "tcp"]), "world_tcp": "tcp",
             "world_ucx": "ucx"}[job["wire"]]
    world = quiet_world(roles, wires)
    world["sizes_known"] = rng.random() < 0.7
    world["store_apart"] = rng.random() < 0.6
    world["keeps_world"] = [rng.random() < 0.6 for _ in range(ranks)]
    job["world"] = world
    if job["wire"] != "world_direct" and rng.random() < 0.3:
        # Some pairs copy directly, the others send messages.
        job["session"].update(direct=True, ranks_per_node=rng.choice([1, 2, 3]))
    if rng.random() < 0.4:
        world["start_s"] = [rng.random() if rng.random() < 0.4 else 0 for _ in range(ranks)]
        job["kinds"].append("late members")
    if rng.random() < 0.3:
        world["seconds"] = [{"rank": rng.randrange(ranks), "at_s": rng.random()}]
        job["kinds"].append("a second member")
    if rng.random() < 0.5:
        world["strangers"] = [draw_stranger(ranks, rng) for _ in range(rng.randint(1, 4))]
        job["kinds"].append("strangers")
    if world["store_apart"] and rng.random() < 0.5:
        world["store_fault"] = {"what": rng.choice(["stopped", "killed", "restarted"]),
                                "at_s": rng.random() * 0.8, "after_met": rng.random() < 0.7}
        job["kinds"].append(f"a store {world['store_fault']['what']}")
    for kill in (each for each in job["faults"] if each["signal"] == "SIGKILL"):
        if rng.random() < 0.4:
            kill["at_s"] *= 0.05  # while members meet
    world["host"] = rng.choice(hosts())
    if ":" in world["host"]:
        job["kinds"].append("IPv6")
    fault = world["store_fault"]
    if job["kills"] or (fault and not fault["after_met"]):
        world["wait_s"] = SHORT_WAIT_S


def draw_stranger(ranks, rng):
    """Whoever talks to the store (-1) or to a member, and has no business there."""
    return {"to": rng.choice([-1, rng.randrange(ranks)]), "at_s": rng.random() * 1.2,
            "kind": rng.choice(STRANGERS), "seed": rng.getrandbits(32)}


def name_of(job, rank):
    """The member that a rank is: "server 1"."""
    for role, size in job["world"]["roles"]:
        if rank < size:
            return f"{role} {rank}"
        rank -= size
    raise ValueError(rank)
