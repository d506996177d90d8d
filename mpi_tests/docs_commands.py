"""Finds commands in pages, the options that they name, and what a page shows of their output."""
import dataclasses
import re

# What a line of a shell block begins with, behind "$ " and variables.
HEADS = re.compile(r"(\$ )?(\w+=\S+ )*(sudo )?(scripts/|build/bin/|"
                   r"sluice-\w+ [-a-z]|(mpirun|torchrun|srun|sbatch|docker|apptainer|cmake|ctest|"
                   r"tar|python3?|curl|git|sysctl|setarch|export|cd|man|mkdir|rm)\b)")
OURS = re.compile(r"(\$ )?(\w+=\S+ )*(scripts/|build/bin/)")
# A paragraph that ends like this announces output of the command before it.
ANNOUNCES = re.compile(r"\b(prints|ends with|shows|says)\b[^.]*:$")
SHELLS = ("", "sh", "bash", "shell", "console")


@dataclasses.dataclass
class Block:
    """Indented or fenced lines of a page. `lead`: the last line of text before it."""
    line: int
    language: str
    lines: list
    lead: str

    def is_shell(self):
        return self.language in SHELLS and (
            bool(HEADS.match(self.lines[0])) or any(map(OURS.match, self.lines)))

    def is_output(self):
        return self.language in SHELLS and not self.is_shell() and bool(ANNOUNCES.search(self.lead))


@dataclasses.dataclass
class Command:
    """One command of a page; `shown`: lines of its output that the page has."""
    page: str
    line: int
    text: str
    shown: list = dataclasses.field(default_factory=list)

    def where(self):
        return f"{self.page}:{self.line}: {self.text}"


def blocks(text):
    """The code blocks of Markdown."""
    lines, found, lead, at = text.splitlines(), [], "", 0
    while at < len(lines):
        fence = re.match(r"\s*```\s*(\S*)", lines[at])
        if fence:
            end = next((n for n in range(at + 1, len(lines)) if lines[n].strip() == "```"),
                       len(lines))
            found.append(Block(at + 2, fence[1], lines[at + 1:end], lead))
            at = end + 1
        elif lines[at].startswith("    ") and (at == 0 or not lines[at - 1].strip()):
            end = at
            while end < len(lines) and (lines[end].startswith("    ") or not lines[end].strip()):
                end += 1
            code = [line[4:] for line in lines[at:end]]
            while not code[-1].strip():
                code.pop()
            found.append(Block(at + 1, "", code, lead))
            at = end
        else:
            lead = lines[at].strip() or lead
            at += 1
    return [block for block in found if any(line.strip() for line in block.lines)]


def _commands_of(page, block):
    """Commands of a shell block: lines joined at backslashes, without comments. In a block with
    "$ " lines the others are output."""
    prompted = any(line.startswith("$ ") for line in block.lines)
    found, joined, first = [], "", block.line
    for number, line in enumerate(block.lines, block.line):
        if prompted and not joined and not line.startswith("$ "):
            if line.strip():
                found[-1].shown.append(line.strip())
            continue
        if not joined:
            first = number
        joined += line.removeprefix("$ ") if not joined else line.strip()
        if joined.endswith("\\"):
            joined = joined[:-1].rstrip() + " "
            continue
        text = re.sub(r"(^|\s)#\s.*$", "", joined).strip()
        joined = ""
        if text:
            found.append(Command(page, first, text))
    return found


def commands(page, text):
    """All commands of the page's shell blocks, with the output that it shows of each."""
    found = []
    for block in blocks(text):
        if block.is_shell():
            found += _commands_of(page, block)
        elif block.is_output() and found:
            found[-1].shown += [line.strip() for line in block.lines if line.strip()]
    return found


def spans(page, text):
    """Code within text that begins as a command of this project, or is an option of one."""
    prose, fenced = [], False
    for line in text.splitlines():
        if line.lstrip().startswith("```"):
            fenced = not fenced
        prose.append("" if fenced or line.startswith("    ") else line)
    whole = "\n".join(prose)
    for match in re.finditer(r"`([^`]+)`", whole):
        span = " ".join(match[1].replace("\\|", "|").split())
        if re.match(r"(scripts/\S|build/bin/|sluice-(bench|sim)\b|--\w)", span):
            yield Command(page, whole.count("\n", 0, match.start()) + 1, span)


def options(text):
    """The options that a command names: "--shape", "-n"."""
    return re.findall(r"(?<![\w/-])(--?[A-Za-z][\w-]*)", re.sub(r"'[^']*'|\"[^\"]*\"", "", text))


def shape(text):
    """`text` without its numbers and the lengths of its gaps, to compare what two runs print."""
    text = re.sub(r"[-+]?\d[\d,.]*(?:e[-+]?\d+)?\b%?", "#", text)
    text = re.sub(r"\b[KMGT]i?B\b|\bbytes\b|\b[mun]?s\b", "U", text.replace("µs", "us"))
    return " ".join(text.split())


def not_printed(shown, output):
    """The first line of `shown` that is not in `output` in the same words; None if all are."""
    printed = shape(output)
    for line in shown:
        if line.strip(" .") and shape(line).rstrip(".") not in printed:
            return line
    return None
