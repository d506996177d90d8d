"""Random redistributions from a seed: layouts of every kind on small tensors."""
import random

OPERATIONS = ["sum", "avg", "max", "min", "product"]
FLOATS = ["f32", "f64", "f16", "bf16", "f8e4m3", "f8e5m2"]
OPAQUE = ["f8e8m0", "f4e2m1x2", "i4x2", "f8e4m3fnuz", "f8e5m2fnuz", "c64", "c128"]
IRREDUCIBLE = OPAQUE + ["bool"]
DTYPES = FLOATS + ["i64", "i32", "i16", "i8", "u64", "u32", "u16", "u8"] + IRREDUCIBLE


def factorise(rng, count, dims):
    """A mesh of `dims` sizes with `count` ranks."""
    sizes = [1] * dims
    factor = 2
    while count > 1:
        while count % factor == 0:
            sizes[rng.randrange(dims)] *= factor
            count //= factor
        factor += 1
    return sizes


def random_side(rng, world, shape):
    count = rng.randint(1, world)
    if rng.random() < 0.4:
        count = world
    ranks = list(range(world))
    if rng.random() < 0.7:
        rng.shuffle(ranks)
    first = rng.randint(0, world - count)
    ranks = ranks[first:first + count]
    mesh = factorise(rng, count, rng.randint(1, 4))
    placements = []
    for _ in mesh:
        dim = rng.randrange(len(shape))
        kind = rng.random()
        if kind < 0.25:
            placements.append("R")
        elif kind < 0.7:
            placements.append(f"S({dim})")
        else:
            placements.append(f"SS({dim},{rng.randint(1, 5)})")
    side = {"mesh": mesh, "ranks": ranks, "placements": placements}
    if rng.random() < 0.4:
        side["order"] = rng.sample(range(len(mesh)), len(mesh))
    return side


def random_shape(rng, max_elements):
    dims = rng.choice([1, 2, 2, 2, 3, 3, 4, 5, 8])
    shape = []
    left = max_elements
    for d in range(dims):
        most = max(1, min(left, rng.choice([2, 5, 17, 64, max_elements]) if d else left))
        size = rng.randint(1, most)
        shape.append(size)
        left = max(1, left // size)
    rng.shuffle(shape)
    if rng.random() < 0.05:
        shape[rng.randrange(dims)] = 0
    return shape


def make_partial(rng, case):
    """Some of the source's mesh dimensions hold contributions. Products of narrow types soon are no
    numbers, which say little, so there are none."""
    dtype = case["source"].get("dtype", case.get("dtype", "f32"))
    if dtype in IRREDUCIBLE:
        return
    narrow = dtype in FLOATS and dtype not in ("f32", "f64")
    operations = OPERATIONS[:-1] if narrow else OPERATIONS
    placements = case["source"]["placements"]
    for m in rng.sample(range(len(placements)), rng.randint(1, len(placements))):
        placements[m] = f"P({rng.choice(operations)})"


def make_cast(rng, case):
    case.pop("dtype", None)
    case["source"]["dtype"] = rng.choice(FLOATS)
    case["target"]["dtype"] = rng.choice(FLOATS)


def random_cases(seed, world, count, max_elements=20000, partial=True, casts=True):
    rng = random.Random(seed)
    cases = []
    for i in range(count):
        shape = random_shape(rng, max_elements)
        case = {"id": f"random-{seed}-{i}", "shape": shape, "dtype": rng.choice(DTYPES)}
        if rng.random() < 0.1:
            case["dtype"] = "f32"
            case["tags"] = ["a key that readers ignore"]
        case["source"] = random_side(rng, world, shape)
        case["target"] = random_side(rng, world, shape)
        if casts and rng.random() < 0.3:
            make_cast(rng, case)
        if partial and rng.random() < 0.4:
            make_partial(rng, case)
        cases.append(case)
    return cases


def cut(rng, box, parts):
    """Boxes that make up `box`, `parts` of them or fewer."""
    offset, shape = box
    dim = rng.randrange(len(shape))
    if parts <= 1 or shape[dim] < 2:
        return [box]
    at = rng.randint(1, shape[dim] - 1)
    second = offset[:dim] + [offset[dim] + at] + offset[dim + 1:]
    first_shape = shape[:dim] + [at] + shape[dim + 1:]
    second_shape = shape[:dim] + [shape[dim] - at] + shape[dim + 1:]
    return (cut(rng, (offset, first_shape), parts // 2) +
            cut(rng, (second, second_shape), parts - parts // 2))


def random_boxes(rng, world, shape, covers):
    """One or two families of ranks, each of which divides boxes of the tensor among its own. The
    first one leaves nothing out where `covers`."""
    ranks = rng.sample(range(world), rng.randint(1, world))
    middle = rng.randint(1, len(ranks))
    held = {}
    for family in (ranks[:middle], ranks[middle:]):
        for box in cut(rng, ([0] * len(shape), list(shape)), rng.randint(1, 3 * len(family) + 1)):
            if family and ((covers and family[0] == ranks[0]) or rng.random() < 0.7):
                held.setdefault(rng.choice(family), []).append(box)
    if not held:
        held[ranks[0]] = [([0] * len(shape), list(shape))]
    return {"boxes": [{"rank": rank, "parts": [{"offset": o, "shape": s} for o, s in boxes]}
                      for rank, boxes in held.items()]}


def random_box_cases(seed, world, count, max_elements=20000):
    """Of boxes on one side or on both."""
    rng = random.Random(seed)
    cases = []
    while len(cases) < count:
        shape = random_shape(rng, max_elements)
        if 0 in shape:
            continue
        case = {"id": f"boxes-{seed}-{len(cases)}", "shape": shape, "dtype": rng.choice(DTYPES)}
        sides = rng.choice([("source",), ("target",), ("source", "target")])
        for side in ("source", "target"):
            case[side] = (random_boxes(rng, world, shape, side == "source") if side in sides
                          else random_side(rng, world, shape))
        if rng.random() < 0.3:
            make_cast(rng, case)
        cases.append(case)
    return cases
