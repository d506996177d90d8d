"""What a redistribution must come to, by brute force: every element, one at a time.

Written from the definition of layouts alone (docs/architecture.md) and independent of the library:
no interval arithmetic, no planner. Python 3 standard library only.
"""
import functools
import itertools
import math

from reshard_numbers import combine, rounded

MODULUS = {"f64": 65521, "f32": 65521, "i64": 65521, "i32": 65521, "f16": 2039, "bf16": 251,
           "u8": 251, "i8": 127, "f8e4m3": 13, "f8e5m2": 7, "u64": 65521, "u32": 65521,
           "i16": 127, "u16": 127, "bool": 2, "c64": 65521, "c128": 65521, "f8e8m0": 251,
           "f4e2m1x2": 251, "i4x2": 251, "f8e4m3fnuz": 251, "f8e5m2fnuz": 251}
BYTES = {"f64": 8, "i64": 8, "f32": 4, "i32": 4, "f16": 2, "bf16": 2, "u8": 1, "i8": 1,
         "f8e4m3": 1, "f8e5m2": 1, "u64": 8, "u32": 4, "i16": 2, "u16": 2, "bool": 1, "c64": 8,
         "c128": 16, "f8e8m0": 1, "f4e2m1x2": 1, "i4x2": 1, "f8e4m3fnuz": 1, "f8e5m2fnuz": 1}


def chunk(indices, parts):
    """Cuts a list into `parts` lists of ceil(len / parts), the last ones perhaps short or empty."""
    step = -(-len(indices) // parts)
    return [indices[min(i * step, len(indices)):min((i + 1) * step, len(indices))]
            for i in range(parts)]


def parse_placement(text):
    """("R",), ("S", dim), ("SS", dim, pieces) or ("P", operation)."""
    name, _, rest = text.partition("(")
    arguments = [part.strip() for part in rest.rstrip(") ").split(",") if part.strip()]
    return (name.strip(),) + tuple(a if a.isalpha() else int(a) for a in arguments)


def coordinates_of(side, rank):
    position = side["ranks"].index(rank)
    coordinates = []
    for size in reversed(side["mesh"]):
        coordinates.insert(0, position % size)
        position //= size
    return coordinates


def owned_lists(side, shape, rank):
    """The index list of each tensor dimension that `rank` owns, or None outside of the mesh."""
    if rank not in side["ranks"]:
        return None
    coordinates = coordinates_of(side, rank)
    lists = [list(range(size)) for size in shape]
    for m in side.get("order", range(len(side["mesh"]))):
        size, coordinate = side["mesh"][m], coordinates[m]
        placement = parse_placement(side["placements"][m])
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


def ranks_of(side):
    """As reports list them."""
    if "boxes" in side:
        return sorted(of["rank"] for of in side["boxes"])
    return side["ranks"]


def held_by(side, shape, rank):
    """The flat indices of what `rank` holds, in the order of its memory, and its local shape."""
    if "boxes" not in side:
        lists = owned_lists(side, shape, rank)
        if lists is None:
            return [], None
        return flat_indices(lists, shape), [len(l) for l in lists]
    flat = []
    for of in side["boxes"]:
        for part in of["parts"] if of["rank"] == rank else []:
            flat += flat_indices([list(range(begin, begin + size)) for begin, size
                                  in zip(part["offset"], part["shape"])], shape)
    return flat, [len(flat)]


def value(g, seed, modulus, q=0):
    return (((g + seed) * 2654435761 + q * 40503) % 2**32) % modulus


def dtypes(case):
    """Those of the source and of the target."""
    dtype = case.get("dtype", "f32")
    return case["source"].get("dtype", dtype), case["target"].get("dtype", dtype)


def is_partial(case):
    placements = case["source"].get("placements", [])
    return any(parse_placement(text)[0] == "P" for text in placements)


@functools.lru_cache(maxsize=2**16)
def combined(op, values, dtype):
    """Many elements have equal contributions."""
    return combine(op, values, dtype)


def reduced(contributions, ops, dtype):
    """`contributions`: {coordinates in the Partial mesh dimensions: value}. Folds one dimension
    after the other, left to right, in the order of the coordinates. Neighbours with the same op
    (sum, max or min) count as one."""
    runs = [len(list(run)) for _, run in itertools.groupby(
        range(len(ops)), lambda i: ops[i] if ops[i] in ("sum", "max", "min") else i)]
    first = 0
    for dims in runs:
        op = ops[first]
        first += dims
        folded = {}
        for coordinates in sorted(contributions):
            folded.setdefault(coordinates[dims:], []).append(contributions[coordinates])
        contributions = {rest: combined(op, tuple(values), dtype)
                         for rest, values in folded.items()}
    return contributions[()]


def source_values(case, seed):
    """{flat index: what the source holds, in its dtype}, by visiting what every rank owns."""
    side, shape = case["source"], case["shape"]
    src_dtype, dst_dtype = dtypes(case)
    modulus = min(MODULUS[src_dtype], MODULUS[dst_dtype])
    placements = [parse_placement(text) for text in side.get("placements", [])]
    if not is_partial(case):
        return {g: value(g, seed, modulus) for g in range(math.prod(shape))}
    partial = [m for m, p in enumerate(placements) if p[0] == "P" and side["mesh"][m] > 1]
    lowest = {}  # {flat index: {coordinates in the Partial dimensions: lowest rank}}
    for rank in sorted(side["ranks"]):
        coordinates = coordinates_of(side, rank)
        key = tuple(coordinates[m] for m in partial)
        for g in flat_indices(owned_lists(side, shape, rank), shape):
            lowest.setdefault(g, {}).setdefault(key, rank)
    ops = [placements[m][1] for m in partial]
    return {g: reduced({key: value(g, seed, modulus, q) for key, q in ranks.items()}, ops,
                       src_dtype)
            for g, ranks in lowest.items()}


def as_integer(number):
    """As fingerprints count it: towards zero, and 0 if it is no number or too large."""
    if isinstance(number, int):
        return number
    return int(number) if math.isfinite(number) and abs(number) < 9.2e18 else 0


def expected_targets(case, seed):
    """The fingerprints that the target ranks must report, in mesh order."""
    shape = case["shape"]
    src_dtype, dst_dtype = dtypes(case)
    held = source_values(case, seed)
    if is_partial(case) and src_dtype != dst_dtype:
        held = {g: rounded(number, dst_dtype) for g, number in held.items()}
    reports = []
    for rank in ranks_of(case["target"]):
        flat, local_shape = held_by(case["target"], shape, rank)
        values = [as_integer(held[g]) for g in flat]
        checksum = (sum(values) + 2**63) % 2**64 - 2**63
        ordered = sum((p + 1) * v for p, v in enumerate(values)) % 2**64
        reports.append({"rank": rank, "local_shape": local_shape,
                        "checksum": checksum, "ordered_checksum": str(ordered),
                        "first": flat[0] if flat else None, "last": flat[-1] if flat else None})
    return reports


def expected_payload(case):
    """Bytes of the elements that reach a target rank which did not own them. Under a Partial source
    it is up to the plan who reduces what, and who then still has to be sent it: None."""
    if is_partial(case):
        return None
    shape = case["shape"]
    size = min(BYTES[dtype] for dtype in dtypes(case))
    if math.prod(shape) == 0:
        return 0
    payload = 0
    for rank in ranks_of(case["target"]):
        wanted = set(held_by(case["target"], shape, rank)[0])
        had = set(held_by(case["source"], shape, rank)[0])
        payload += len(wanted - had) * size
    return payload
