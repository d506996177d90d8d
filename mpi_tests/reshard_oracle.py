"""What a redistribution must come to, by brute force: every element, one at a time.

Written from the definition of layouts alone (docs/architecture.md) and independent of the library:
no interval arithmetic, no planner. Python 3 standard library only.
"""
import math

MODULUS = {"f64": 65521, "f32": 65521, "i64": 65521, "i32": 65521, "f16": 2039, "bf16": 251,
           "u8": 251, "i8": 127, "f8e4m3": 13, "f8e5m2": 7}
BYTES = {"f64": 8, "i64": 8, "f32": 4, "i32": 4, "f16": 2, "bf16": 2, "u8": 1, "i8": 1,
         "f8e4m3": 1, "f8e5m2": 1}


def chunk(indices, parts):
    """Cuts a list into `parts` lists of ceil(len / parts), the last ones perhaps short or empty."""
    step = -(-len(indices) // parts)
    return [indices[min(i * step, len(indices)):min((i + 1) * step, len(indices))]
            for i in range(parts)]


def parse_placement(text):
    """("R",), ("S", dim) or ("SS", dim, pieces)."""
    name, _, rest = text.partition("(")
    return (name.strip(),) + tuple(int(x) for x in rest.rstrip(") ").split(",") if x.strip())


def owned_lists(side, shape, rank):
    """The index list of each tensor dimension that `rank` owns, or None outside of the mesh."""
    if rank not in side["ranks"]:
        return None
    position = side["ranks"].index(rank)
    coordinates = []
    for size in reversed(side["mesh"]):
        coordinates.insert(0, position % size)
        position //= size
    lists = [list(range(size)) for size in shape]
    for size, coordinate, text in zip(side["mesh"], coordinates, side["placements"]):
        placement = parse_placement(text)
        if placement[0] == "S":
            dim = placement[1]
            lists[dim] = chunk(lists[dim], size)[coordinate]
        elif placement[0] == "SS":
            dim, pieces = placement[1:]
            lists[dim] = [i for piece in chunk(lists[dim], pieces)
                          for i in chunk(piece, size)[coordinate]]
    return lists


def flat_indices(lists, shape):
    flat = [0]
    for owned, size in zip(lists, shape):
        flat = [base * size + i for base in flat for i in owned]
    return flat


def value(g, seed, modulus):
    return ((g + seed) * 2654435761 % 2**32) % modulus


def expected_targets(case, seed):
    """The fingerprints that the target ranks must report, in mesh order."""
    shape = case["shape"]
    modulus = MODULUS[case.get("dtype", "f32")]
    reports = []
    for rank in case["target"]["ranks"]:
        lists = owned_lists(case["target"], shape, rank)
        flat = flat_indices(lists, shape)
        values = [value(g, seed, modulus) for g in flat]
        ordered = sum((p + 1) * v for p, v in enumerate(values)) % 2**64
        reports.append({"rank": rank, "local_shape": [len(l) for l in lists],
                        "checksum": sum(values), "ordered_checksum": str(ordered),
                        "first": flat[0] if flat else None, "last": flat[-1] if flat else None})
    return reports


def expected_payload(case):
    """Bytes of the elements that reach a target rank which did not own them."""
    shape = case["shape"]
    size = BYTES[case.get("dtype", "f32")]
    if math.prod(shape) == 0:
        return 0
    payload = 0
    for rank in case["target"]["ranks"]:
        wanted = set(flat_indices(owned_lists(case["target"], shape, rank), shape))
        lists = owned_lists(case["source"], shape, rank)
        had = set(flat_indices(lists, shape)) if lists is not None else set()
        payload += len(wanted - had) * size
    return payload
