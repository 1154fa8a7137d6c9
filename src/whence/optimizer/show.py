"""Plans for people and for programs: as a tree of text and as JSON, with what was pruned."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from whence.optimizer.best_first import Optimizer
from whence.optimizer.cost import ROW
from whence.optimizer.plans import Plan
from whence.optimizer.query import places_of
from whence.optimizer.query_space import QuerySpace
from whence.optimizer.space import Alternative, Node

MOST_COUNTED = 9  # relations of a query whose whole space is counted


@dataclass(frozen=True)
class Pruned:
    """What there is, what of it was looked at, what the plan has. The rest was pruned."""

    nodes: int
    alternatives: int
    nodes_seen: int
    alternatives_seen: int
    nodes_kept: int

    def lines(self) -> Iterator[str]:
        yield f"{self.nodes:,} nodes with {self.alternatives:,} alternatives, of which the plan has {self.nodes_kept:,}"
        yield f"  bounding      {self.nodes - self.nodes_seen:,} nodes never looked into"
        yield f"  references    {self.nodes_seen - self.nodes_kept:,} nodes that no chosen alternative reads"
        yield f"  suppression   {self.alternatives_seen - self.nodes_seen:,} alternatives that are not the best of their node"


def pruned(optimizer: Optimizer, space: QuerySpace) -> Pruned | None:
    """None if the whole space is too large to be counted."""
    if len(space.query.relations) > MOST_COUNTED:
        return None
    counted = space.fresh()
    nodes = list(counted.nodes())
    seen = optimizer.enumerated()
    alternatives = sum(len(counted.alternatives(node)) for node in nodes)
    kept = len({each.node for each in optimizer.plan().walk()})
    return Pruned(len(nodes), alternatives, seen.nodes, seen.alternatives, kept)


def names_of(space: QuerySpace, expression: int) -> list[str]:
    return [space.query.relations[at].name for at in places_of(expression & space.whole)]


def title(space: QuerySpace, node: Node, alternative: Alternative) -> str:
    """An operator and what it makes: `sort-merge on c_custkey: customer, orders`."""
    return f"{alternative.physical}{detail(space, node, alternative)}: {', '.join(names_of(space, node[0]))}"


def detail(space: QuerySpace, node: Node, alternative: Alternative) -> str:
    match alternative.physical, alternative.left:
        case "sort-merge", (_, wanted):
            return f" on {space.order_name(wanted & 0xFF, node[0])}"
        case "indexed nested loops", (expression, wanted):
            return f" on {space.order_name(wanted >> 8 & 0xFF, expression)}"
        case "sort" | "index scan", _ if node[1] & 0xFF:
            return f" by {space.order_name(node[1] & 0xFF, node[0])}"
        case "repartition", _:
            return f" by {space.order_name(node[1] >> 32, node[0])}"
        case "ship", (_, wanted):
            return f" from {space.place_name(wanted)} to {space.place_name(node[1])}"
    return ""


def cost_text(cost: int) -> str:
    return f"{cost / ROW:,.0f}"


def plan_lines(space: QuerySpace, plan: Plan) -> list[str]:
    """A line for each operator, its inputs below it, with rows and costs in columns."""
    rows = list(_tree(space, plan, "", ""))
    width = max(len(text) for text, _ in rows)
    head = f"{'':{width}}  {'rows':>14}  {'cost':>14}  {'with inputs':>14}"
    return [head] + [f"{text:{width}}  {_numbers(space, each)}" for text, each in rows]


def _tree(space: QuerySpace, plan: Plan, first: str, rest: str) -> Iterator[tuple[str, Plan]]:
    yield first + title(space, plan.node, plan.alternative), plan
    for at, each in enumerate(plan.inputs, 1):
        last = at == len(plan.inputs)
        yield from _tree(space, each, rest + ("└─ " if last else "├─ "), rest + ("   " if last else "│  "))


def _numbers(space: QuerySpace, plan: Plan) -> str:
    rows = "" if plan.alternative.physical == "index lookup" else f"{space.rows(plan.node[0]):,.0f}"
    return f"{rows:>14}  {cost_text(alone(plan)):>14}  {cost_text(plan.cost):>14}"


def alone(plan: Plan) -> int:
    """What an operator costs without its inputs."""
    return plan.cost - sum(each.cost for each in plan.inputs)


def plan_to_json(space: QuerySpace, plan: Plan, optimizer: Optimizer) -> dict[str, Any]:
    return {
        "operator": plan.alternative.physical,
        "detail": detail(space, plan.node, plan.alternative).strip(),
        "relations": names_of(space, plan.node[0]),
        "rows": round(space.rows(plan.node[0]), 3),
        "cost": alone(plan) / ROW,
        "cost_with_inputs": plan.cost / ROW,
        "alternatives": [
            {
                "operator": each.physical + detail(space, plan.node, each),
                "inputs": [names_of(space, read[0]) for read in (each.left, each.right) if read is not None],
                "cost_at_least": bound / ROW,
                "chosen": each is plan.alternative,
            }
            for bound, each in optimizer.considered(plan.node)
        ],
        "inputs": [plan_to_json(space, each, optimizer) for each in plan.inputs],
    }
