"""Tables, numbers and marked blocks of Markdown pages."""
import re

MIB = 1 << 20


def table(header, rows, left=1):
    """The first `left` columns are texts, the others numbers."""
    lines = ["| " + " | ".join(header) + " |",
             "|" + "|".join("---" if i < left else "---:" for i in range(len(header))) + "|"]
    return "\n".join(lines + ["| " + " | ".join(str(c) for c in row) + " |" for row in rows])


def spread(median, q1, q3, digits=2):
    """A median with its quartiles."""
    return f"{median:.{digits}f} ({q1:.{digits}f}-{q3:.{digits}f})"


def spread_of(entry, digits=2):
    return spread(entry["median"], entry["q1"], entry["q3"], digits)


def size(count):
    for unit, name in ((1 << 30, "GiB"), (MIB, "MiB"), (1 << 10, "KiB")):
        if count >= unit:
            return f"{count / unit:.4g} {name}"
    return f"{count} B"


def image(text, name):
    return f"![{text}](images/{name})"


def block_pattern(name):
    return re.compile(rf"(<!-- {re.escape(name)} -->\n)(.*?)(<!-- end {re.escape(name)} -->)",
                      re.DOTALL)


def block_names(text):
    return re.findall(r"<!-- end (.+?) -->", text)


def fill(text, name, content):
    """`text` with `content` in the block `name`; None where there is no such block."""
    pattern = block_pattern(name)
    if not pattern.search(text):
        return None
    inside = f"\n{content}\n\n" if content else ""
    return pattern.sub(lambda m: m.group(1) + inside + m.group(3), text)
