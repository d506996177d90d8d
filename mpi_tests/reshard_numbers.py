"""Arithmetic of the element types: every result is rounded to the type, or wrapped around.

Exact numbers (fractions) in between, so that there is one rounding and no other.
"""
import math
from fractions import Fraction

# Bits of the significand with its hidden one, smallest normal exponent, largest finite number.
FLOATS = {"f64": (53, -1022, (2 - Fraction(1, 2**52)) * 2**1023),
          "f32": (24, -126, (2 - Fraction(1, 2**23)) * 2**127),
          "f16": (11, -14, Fraction(65504)),
          "bf16": (8, -126, (2 - Fraction(1, 2**7)) * 2**127),
          "f8e4m3": (4, -6, Fraction(448)),
          "f8e5m2": (3, -14, Fraction(57344))}
INTEGERS = {"i64": (64, True), "i32": (32, True), "i16": (16, True), "i8": (8, True),
            "u64": (64, False), "u32": (32, False), "u16": (16, False), "u8": (8, False)}


def rounded(number, dtype):
    """The nearest number of a floating type, ties to even. Past the largest it is infinity, or the
    largest in f8e4m3, which has no infinity."""
    if isinstance(number, float) and not math.isfinite(number):
        saturates = dtype == "f8e4m3" and math.isinf(number)
        return math.copysign(448.0, number) if saturates else number
    exact = Fraction(number)
    if exact == 0:
        return 0.0
    bits, lowest, largest = FLOATS[dtype]
    exponent = abs(exact.numerator).bit_length() - exact.denominator.bit_length()
    if Fraction(2)**exponent > abs(exact):
        exponent -= 1
    step = Fraction(2)**(max(exponent, lowest) - bits + 1)
    result = round(exact / step) * step  # to even, as Python rounds fractions
    if abs(result) > largest:
        return math.copysign(448.0 if dtype == "f8e4m3" else math.inf, result)
    return float(result)


def wrapped(number, dtype):
    bits, signed = INTEGERS[dtype]
    number %= 2**bits
    return number - 2**bits if signed and number >= 2**(bits - 1) else number


def fits(number, dtype):
    return wrapped(number, dtype) if dtype in INTEGERS else rounded(number, dtype)


def step(op, a, b, dtype):
    """One operation on two elements."""
    if op in ("max", "min"):
        return max(a, b) if op == "max" else min(a, b)
    if dtype in INTEGERS:
        return wrapped(a * b if op == "product" else a + b, dtype)
    if not (math.isfinite(a) and math.isfinite(b)):
        return rounded(a * b if op == "product" else a + b, dtype)
    exact = Fraction(a), Fraction(b)
    return rounded(exact[0] * exact[1] if op == "product" else exact[0] + exact[1], dtype)


def combine(op, values, dtype):
    """`values` reduced from the first to the last."""
    result = values[0]
    for number in values[1:]:
        result = step(op, result, number, dtype)
    if op != "avg":
        return result
    if dtype in INTEGERS:
        whole = abs(result) // len(values)  # truncates
        return whole if result >= 0 else -whole
    return rounded(Fraction(result) / len(values), dtype) if math.isfinite(result) else result
