"""What Connect takes, for docs/joining.md."""
from pages.markdown import spread_of, table


def times(results):
    data = results.get("connect")
    if not data:
        return ""
    rows = [[f"{case['tensors']:,} tensors",
             "each rank has some" if case["stages"] else "cut over all",
             spread_of(case["connect_ms"], 0), spread_of(case["compile_ms"], 0)]
            for case in data["cases"]]
    return table([f"{data['processes']} processes, {data['head']['machine']['cpus']} CPUs",
                  "sources", "`Connect`, ms", "`Compile` alone, ms"], rows, left=2)
