"""A query whose statistics are wrong: it is planned, run, and planned again with what the run has seen, until nothing moves."""

from __future__ import annotations

from pathlib import Path

from whence.optimizer import Optimizer, QuerySpace, parse_query, read_statistics
from whence.optimizer.changes import parse_changes
from whence.optimizer.show import plan_lines

FOLDER = Path(__file__).parent


def main() -> None:
    statistics = read_statistics(FOLDER / "tpch.json")
    query = parse_query((FOLDER / "q5.sql").read_text(encoding="utf-8"), statistics)
    space = QuerySpace(query, statistics)
    optimizer = Optimizer(space)
    print("by the statistics:")
    print("\n".join(line.rstrip() for line in plan_lines(space, optimizer.plan())))
    # What was seen of a part says something of all that contains it: smaller parts first.
    seen = {"orders": 600_000, "customer, nation, region": 90_000, "customer, orders, nation, region": 400_000}
    for names, rows in seen.items():
        moved = optimizer.update([each.apply(space) for each in parse_changes(f"rows({names}) = {rows}", query)])
        effort = optimizer.effort
        print(f"\nseen {rows:,} rows of {names}: {'another plan' if moved else 'the same plan'},", end=" ")
        print(f"{effort.nodes} nodes and {effort.alternatives} alternatives looked at")
    print("\n".join(line.rstrip() for line in plan_lines(space, optimizer.plan())))


if __name__ == "__main__":
    main()
