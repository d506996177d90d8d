"""Where figures are from: the head of a file of results in words."""
MEASURED = ("best-mpi", "serial", "budget-24", "budget-models", "sizes", "squares", "tiny",
            "latency", "checkpoints", "two-nodes", "copies", "planning")


def head_of(data):
    """{machine, date, commit, command, rounds}; None without a file. Scripts that are run by
    themselves write the same things in their own way."""
    if not data or "head" in data:
        return data and data["head"]
    machine = data["machine"]
    return {"machine": {"cpus": machine["cores"], "cpu": machine["cpu"],
                        "kernel": machine["kernel"],
                        "memory_gib": round(machine["memory_bytes"] / (1 << 30), 1)},
            "date": data["date"], "commit": data["commit"][:7] + ("+" if data["changed"] else ""),
            "command": data["command"], "rounds": data["rounds"]}


def machine_text(machine):
    return (f"{machine['cpus']} CPUs ({machine['cpu']}), {machine['memory_gib']:g} GiB, "
            f"Linux {machine['kernel']}")


def where(results, measured=MEASURED):
    """A line for each machine, date and commit; a warning where a quick run is among them."""
    groups, quick = {}, []
    for name in measured:
        head = head_of(results.get(name))
        if not head:
            continue
        groups.setdefault((machine_text(head["machine"]), head["date"], head["commit"]),
                          []).append(name)
        if head.get("quick"):
            quick.append(name)
    lines = [f"* {', '.join(f'`{name}.json`' for name in names)}: {machine}; {date}, commit "
             f"`{commit}`" for (machine, date, commit), names in groups.items()]
    if quick:
        lines.append("* **Quick runs, which show that the programs work and no more: "
                     f"{', '.join(quick)}.**")
    return "\n".join(lines)


def rounds(results, name):
    data = results.get(name)
    if not data:
        return "-"
    whole = [case["rounds"] for case in data.get("cases", ())]  # the time may have ended before
    return str(min(whole, default=head_of(data)["rounds"]))
