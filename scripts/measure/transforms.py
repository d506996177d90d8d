"""Transforms of images on one thread: Sluice, memcpy and numpy.

Images are u8, 224 x 224 pixels of three channels side by side, in a ring of 64 MiB. Each channel
has a mean and a standard deviation. They become f32, f16 or bf16, as they lie (nhwc) or with a
plane for each channel (nchw). Rates are of bytes read plus bytes written. The memcpy reads and
writes as many together. numpy is a line that allocates its results, and numpy-into ufuncs that
write into memory that is there; it has no bf16. Each way's first result is compared with plain
Python.

example: compare.py transforms --rounds 2 --seconds 0.1 --json /tmp/transforms.json
"""
import json

import packages
from rounds import CannotRun, Failure, call

PACKAGES = ("python3-venv",)
PROGRAMS = ("micro-bench",)
MPI = False
PIXELS = 224 * 224 * 3
ELEMENT_BYTES = {"f32": 4, "f16": 2, "bf16": 2}

# Runs in the environment that has numpy: prints {way/to/layout: us of an image}.
NUMPY_TURN = r"""
import json, sys, time
import numpy as np

HEIGHT, WIDTH, CHANNELS = 224, 224, 3
RING_BYTES = 64 << 20
seconds = float(sys.argv[1])
scale = np.array([0.017, 0.0173, 0.0176], np.float32)
bias = np.array([-2.1, -2.0, -1.9], np.float32)
source = np.arange(RING_BYTES, dtype=np.uint32).astype(np.uint8)
images = source[: RING_BYTES // (HEIGHT * WIDTH * CHANNELS) * HEIGHT * WIDTH * CHANNELS]
images = images.reshape(-1, HEIGHT, WIDTH, CHANNELS)


def plain(image, to, layout, into):
    made = (image * scale + bias).astype(to, copy=False)
    return np.ascontiguousarray(made.transpose(2, 0, 1)) if layout == "nchw" else made


def into_memory(image, to, layout, into):
    if layout == "nchw":
        for channel in range(CHANNELS):
            plane = into[channel]
            np.multiply(image[:, :, channel], scale[channel], out=plane, casting="same_kind",
                        dtype=np.float32)
            np.add(plane, bias[channel], out=plane, casting="same_kind")
    else:
        np.multiply(image, scale, out=into, casting="same_kind", dtype=np.float32)
        np.add(into, bias, out=into, casting="same_kind")
    return into


def check(way, to, layout, result):
    for y, x, c in ((0, 0, 0), (3, 200, 1), (223, 223, 2)):
        got = result[c, y, x] if layout == "nchw" else result[y, x, c]
        wanted = int(images[1][y, x, c]) * float(scale[c]) + float(bias[c])
        if abs(float(got) - wanted) > (1e-5 if to is np.float32 else 1e-2):
            sys.exit(f"{way} made {got} of what should be {wanted}")


times = {}
cases = [(way, name, layout) for way in ("numpy", "numpy-into") for name in ("f32", "f16")
         for layout in ("nchw", "nhwc")]
for way, name, layout in reversed(cases) if sys.argv[2] == "backwards" else cases:
    to = {"f32": np.float32, "f16": np.float16}[name]
    shape = (CHANNELS, HEIGHT, WIDTH) if layout == "nchw" else (HEIGHT, WIDTH, CHANNELS)
    room = max(1, RING_BYTES // int(np.prod(shape)) // np.dtype(to).itemsize)
    results = np.zeros((room, *shape), to)
    run = plain if way == "numpy" else into_memory
    check(way, to, layout, run(images[1], to, layout, results[0]))
    count, begin = 0, time.perf_counter()
    while time.perf_counter() - begin < seconds:
        run(images[count % len(images)], to, layout, results[count % room])
        count += 1
    times[f"{way}/{name}/{layout}"] = (time.perf_counter() - begin) / count * 1e6
print(json.dumps({"numpy": np.__version__, "times": times}))
"""


def options(parser):
    parser.add_argument("--seconds", type=float, default=0.5, help="least time of each turn [0.5]")
    packages.options(parser, "venv-transforms")


def build(args):
    environment = packages.Environment(args.venv)
    args.python, args.backwards = environment.python, True
    if reason := environment.install(["numpy"]):
        raise CannotRun(reason)


def BASELINE(way):
    return f"memcpy, {ELEMENT_BYTES.get(way.split()[1], 0)}"


def cases(_):
    return [{}]


def turns(args):
    return [lambda: sluice_times(args), lambda: numpy_times(args)]


def way_of(name, to, layout, time_us):
    total = PIXELS * (1 + ELEMENT_BYTES[to])
    return {f"{name}, {to} {layout}": {"bytes": total, "time_us": float(time_us),
                                       "gb_per_s": total / time_us / 1e3}}


def sluice_times(args):
    output = call([args.bin / "micro-bench", "--benchmark_filter=Image", "--benchmark_format=json",
                   f"--benchmark_min_time={args.seconds}"])
    times, memcpy = {}, {}
    for run in json.loads(output)["benchmarks"]:
        name = run["name"]
        us = run["real_time"] / {"ns": 1e3, "us": 1, "ms": 1e-3}[run["time_unit"]]
        if name.startswith("ImageMemcpy/"):
            memcpy[int(name.split(":")[1])] = us
        else:  # NormalizedImage/u8_nhwc_to_f32_nchw
            times.update(way_of("sluice", *name.split("_to_")[1].split("_"), us))
    if len(times) != 2 * len(ELEMENT_BYTES) or len(memcpy) != 2:
        raise Failure(f"micro-bench has other benchmarks: {output[-2000:]}")
    for size, us in memcpy.items():
        times[f"memcpy, {size}"] = {"bytes": PIXELS * (1 + size), "time_us": float(us),
                                    "gb_per_s": PIXELS * (1 + size) / us / 1e3}
    return times


def numpy_times(args):
    args.backwards = not args.backwards
    found = json.loads(call([args.python, "-c", NUMPY_TURN, args.seconds,
                             "backwards" if args.backwards else "forwards"]).splitlines()[-1])
    return {way: {**of, "version": found["numpy"]} for name, us in found["times"].items()
            for way, of in way_of(*name.split("/"), us).items()}
