"""The most that a window of bytes in flight can bring, and the time in which it can begin."""


def throughput(base, window_bytes, latency_s, request_bytes):
    """T* = min(B0, M / (L + s / B0)), in bytes per second."""
    return min(base, window_bytes / (latency_s + request_bytes / base))


def first_item(base, latency_s, item_bytes, round_trips=1):
    """Seconds until the first item can be there."""
    return round_trips * latency_s + item_bytes / base
