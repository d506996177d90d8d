"""The file of all results: one run a line, and parts that are measured again replace the old."""
import json
import os


def merge(path, name, part):
    """Puts `part` under `name`; the others stay."""
    parts = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    parts[name] = part
    write(path, parts)


def write(path, parts):
    """No reader finds half a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(path.name + ".draft")
    draft.write_text(text(rounded(parts)) + "\n", encoding="utf-8")
    os.replace(draft, path)


def rounded(value):
    """Six digits are more than any of these numbers hold."""
    if isinstance(value, dict):
        return {key: rounded(member) for key, member in value.items()}
    if isinstance(value, (list, tuple)):
        return [rounded(member) for member in value]
    return float(f"{value:.6g}") if isinstance(value, float) else value


def text(value, depth=0):
    """Like json.dumps, with a member of a list on one line."""
    indent = " " * (depth + 1)
    if isinstance(value, dict) and depth < 2:
        members = [f"{json.dumps(key)}: {text(member, depth + 1)}"
                   for key, member in value.items()]
        return "{\n" + ",\n".join(indent + member for member in members) + "\n" + " " * depth + "}"
    if isinstance(value, list) and depth < 3 and any(isinstance(m, dict) for m in value):
        members = [json.dumps(member) for member in value]
        return "[\n" + ",\n".join(indent + member for member in members) + "\n" + " " * depth + "]"
    return json.dumps(value)
