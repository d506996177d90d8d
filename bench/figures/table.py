"""Tables of any file of results: each list of objects is one, whatever was measured."""
import json

Q1, Q3 = ("q1", "p25"), ("q3", "p75")


def is_spread(value):
    """A median with its quartiles, as all programs and scripts here write them."""
    return isinstance(value, dict) and "median" in value and any(key in value for key in Q1)


def quartiles(spread):
    return tuple(next(spread[key] for key in names if key in spread) for names in (Q1, Q3))


def flat(row, prefix=""):
    """The row without objects in it: their members' names have a dot. Spreads and lists stay."""
    found = {}
    for key, value in row.items():
        if isinstance(value, dict) and not is_spread(value):
            found.update(flat(value, f"{prefix}{key}."))
        else:
            found[prefix + key] = value
    return found


def lists(value, name=""):
    """(name, rows) of each list of objects."""
    if isinstance(value, dict):
        for key, member in value.items():
            yield from lists(member, f"{name}.{key}" if name else key)
    elif isinstance(value, list) and value and all(isinstance(member, dict) for member in value):
        yield name, [flat(member) for member in value]


def number(value):
    """Four digits; whole numbers have all of theirs."""
    if isinstance(value, float) and not value.is_integer():
        return f"{value:,.{max(0, 3 - int(f'{value:e}'.split('e')[1]))}f}"
    return f"{value:,.0f}"


def cell(value):
    if value is None:
        return ""
    if is_spread(value):
        q1, q3 = quartiles(value)
        return f"{number(value['median'])} ({number(q1)}-{number(q3)})"
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        text = value if isinstance(value, str) else json.dumps(value)
        return text.replace("|", "\\|").replace("\n", " ")
    return number(value)


def markdown(rows):
    """What all rows share stands before the table, as far as there are several."""
    columns = list(dict.fromkeys(key for row in rows for key in row))
    texts = [{key: cell(row.get(key)) for key in columns} for row in rows]
    shared = [key for key in columns
              if len(rows) > 1 and len({text[key] for text in texts}) == 1]
    lines = [", ".join(f"{key} {texts[0][key]}" for key in shared), ""] if shared else []
    columns = [key for key in columns if key not in shared] or columns
    lines += ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    lines += ["| " + " | ".join(text[key] for key in columns) + " |" for text in texts]
    return "\n".join(lines)


def tables(parts, ends=""):
    """All lists whose name ends so, as Markdown, each under its name."""
    return "\n\n".join(f"## {name or 'all'}\n\n{markdown(rows)}"
                       for name, rows in lists(parts) if name.endswith(ends))


def head(parts):
    """Machine, date, commit and command, where the file begins with them."""
    found = flat(parts.get("head", parts) if isinstance(parts, dict) else {})
    return [f"{key}: {value if isinstance(value, str) else cell(value)}"
            for key, value in found.items()
            if key.split(".")[0] in ("machine", "date", "commit", "command", "rounds")]
