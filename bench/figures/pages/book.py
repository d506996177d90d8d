"""Which page has which blocks, which plots there are, and whether they say what the results say."""
import pathlib
import re

import fingerprint
from pages import budgets, cases, checkpoints, connect, copies, heads, loaders, losses, meshes
from pages import origins, pair, performance, python, readme, squares, storage, waves, worlds
from pages.markdown import block_names, block_pattern, fill

# {page: {block: what makes its text}}
PAGES = {
    "docs/performance.md": {
        "answers": performance.answers, "where": heads.where, "cases": performance.case_picture,
        "sizes": performance.sizes_picture, "squares": squares.picture, "budgets": budgets.picture,
        "latency": storage.latency, "loses": losses.text},
    "docs/figures/performance.md": {
        "cases": cases.way_tables, "sizes": pair.sizes_table, "squares": squares.squares_table,
        "budgets": budgets.real_text, "latency": storage.latency_table,
        "casts": copies.casts, "rows": copies.rows},
    "docs/large-meshes.md": {
        "peaks": meshes.peaks, "models": meshes.models, "replicas": meshes.replicas,
        "small buckets": meshes.small_buckets,
        "families": meshes.family_times, "check": meshes.check_summary,
        "messages": meshes.messages},
    "docs/notes/2026-11-large-meshes.md": {"planning": meshes.planning, "check": meshes.check},
    "docs/streaming.md": {"streaming": storage.goals_table},
    "docs/joining.md": {"connect": connect.times},
    "docs/figures/worlds.md": {"wires": worlds.wires, "redistributions": worlds.redistributions,
                               "members": worlds.members, "where": worlds.where},
    "docs/figures/python.md": {
        "redistributions": python.redistributions, "small": python.small,
        "start-up": python.start_up, "checkpoints": python.checkpoints, "goals": python.goals,
        "where": python.where},
    "docs/checkpoints.md": {"checkpoints": checkpoints.text},
    "docs/loaders.md": {
        "waves": waves.waves, "slots": waves.slots, "loaders": loaders.loaders,
        "waiting": loaders.waiting, "hand-over": loaders.hand_over, "where": loaders.where},
    "docs/origins.md": {
        "filling": origins.filling, "reading": origins.reading, "peaks": origins.peaks,
        "stages": origins.stages,
        "generation": origins.generation, "where": origins.where},
    "README.md": {"results": readme.results_text, "losses": readme.losses_text},
}
OPTIONAL = (("README.md", "losses"),)  # may be in words of its own

# {plot: what it shows, of the results; nothing: not measured yet}
PLOTS = {
    "docs/images/peaks.svg": meshes.growing,
    "docs/images/budgets.svg": meshes.jobs,
    "docs/images/cases.svg": cases.both,
    "docs/images/sizes.svg": lambda results: {
        memory: pair.curves(results, memory) for memory in ("private", "shared")}
    if results.get("sizes") else None,
    "docs/images/squares.svg": squares.curves,
    "docs/images/latency.svg": storage.bars,
    "docs/images/waves.svg": waves.bars,
    "docs/images/slots.svg": waves.slot_lines,
    **{f"docs/figures/streaming-{part.replace('_', '-')}.svg": storage.part_of(part)
       for part in storage.DRAWN},
}

# Pages that are made whole.
WHOLE = {"docs/figures/streaming.md": storage.streaming_page}


def page_text(root, name, results):
    """The page as it is and as it should be. The latter lacks blocks for which it has no place."""
    path = root / name
    if not path.exists():
        return None, None
    old = new = path.read_text(encoding="utf-8")
    if name in WHOLE:
        return old, WHOLE[name](results) or old
    for block, make in PAGES[name].items():
        filled = fill(new, block, make(results))
        new = new if filled is None else filled
    return old, new


def faults(root, results):
    """What pages say otherwise than the results; a sentence each."""
    found = []
    for name in PAGES:
        old, new = page_text(root, name, results)
        if old is None:
            found.append(f"{name} is not there")
            continue
        for block in PAGES[name]:
            old_block, new_block = (block_pattern(block).search(text) for text in (old, new))
            if old_block and old_block.group(0) != new_block.group(0):
                found.append(f"{name}: the block '{block}' is not what the results say:\n"
                             f"{_first_difference(old_block.group(0), new_block.group(0))}")
            elif not old_block and (name, block) not in OPTIONAL:
                found.append(f"{name} has no block '{block}'")
        for block in block_names(old):
            if block not in PAGES[name]:
                found.append(f"{name}: nothing makes the block '{block}'")
    found += [f"{name} is not what the results say" for name in WHOLE
              if len(set(page_text(root, name, results))) > 1]
    return [*found, *_plot_faults(root, results), *_link_faults(root)]


def _first_difference(old, new):
    olds, news = old.splitlines(), new.splitlines()
    for number in range(max(len(olds), len(news))):
        lines = [text[number] if number < len(text) else "(nothing)" for text in (olds, news)]
        if lines[0] != lines[1]:
            return f"  page:    {lines[0]}\n  results: {lines[1]}"
    return "  blank lines"


def _plot_faults(root, results):
    for name, shows in PLOTS.items():
        data = shows(results)
        path = root / name
        if not data:
            continue
        if not path.exists():
            yield f"{name} is not there, though there are results for it"
        elif fingerprint.note(data) not in path.read_text(encoding="utf-8"):
            yield f"{name} was drawn from other results"
        elif not _referenced(root, name):
            yield f"no page shows {name}"


def _pages(root):
    return [root / "README.md", *sorted((root / "docs").rglob("*.md"))]


def _referenced(root, name):
    return any(pathlib.PurePath(name).name in page.read_text(encoding="utf-8")
               for page in _pages(root))


def _link_faults(root):
    """Pictures that pages show must be there."""
    for page in _pages(root):
        for target in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", page.read_text(encoding="utf-8")):
            if "://" not in target and not (page.parent / target).exists():
                yield f"{page.relative_to(root)} shows {target}, which is not there"
