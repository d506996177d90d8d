"""Which numbers a plot was drawn from: it says so, and an old plot is found without drawing it."""
import hashlib
import json


def of(data):
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()[:16]


def note(data):
    return "drawn from " + of(data)
