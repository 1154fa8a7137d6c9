"""The optimizer as a Whence program: rules.dl on the engine, which keeps its views while statistics change.

It is what the other optimizers are tested against, and what can be asked why. It enumerates and costs the whole space: a rule
cannot leave out rows because of what follows from them, so the prunings that do live in `best_first.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

from whence.io.changes import Changes, Update
from whence.lang import load
from whence.lang.program import Program
from whence.lang.types import Tuple
from whence.optimizer.given import GivenSpace
from whence.optimizer.plans import Plan, plan_of
from whence.optimizer.query_space import QuerySpace
from whence.optimizer.space import Alternative, Node, Space
from whence.session import Session

_FOLDER = Path(__file__).parent


class RuleOptimizer:
    """The views of the rules over a space. `session` answers whatever else is asked of them."""

    def __init__(self, space: QuerySpace | GivenSpace) -> None:
        self.space = space
        program = _program(space)
        self._base = _facts(space)
        facts: dict[str, Iterable[Tuple]] = {"Expr": [space.root], **self._base}
        self.session = Session(program, facts=facts)

    @property
    def cost(self) -> int:
        return self._best()[self.space.root][0]

    def plan(self) -> Plan:
        return plan_of(self.space.root, self._best().__getitem__)

    def _best(self) -> dict[Node, tuple[int, Alternative]]:
        found: dict[Node, tuple[int, Alternative]] = {}
        for expression, wanted, number, cost in self._numbers("BestPlan"):
            found[expression, wanted] = cost, self.space.alternatives((expression, wanted))[number]
        return found

    def _numbers(self, name: str) -> Iterator[tuple[int, ...]]:
        """The rows of a view that has numbers only."""
        yield from self.session.relation(name)  # type: ignore[misc]

    def view(self, name: str) -> dict[Node, int]:
        """A view that has a number for each node: BestCost, Bound, References."""
        return {(expression, wanted): number for expression, wanted, number in self._numbers(name)}

    def update(self) -> Changes:
        """Takes in what has changed in the space since the last time, as one epoch."""
        before, self._base = self._base, _facts(self.space)
        updates = []
        for name, rows in self._base.items():
            updates += [Update("-", name, row) for row in before[name] - rows]
            updates += [Update("+", name, row) for row in rows - before[name]]
        return self.session.apply(updates)


def _facts(space: QuerySpace | GivenSpace) -> dict[str, set[Tuple]]:
    if isinstance(space, GivenSpace):
        return {
            "LocalCost": {
                (*node, each.number, space.own(node) + space.local(node, each))
                for node in space.nodes()
                for each in space.alternatives(node)
            }
        }
    return {
        "Fact": set(space.factors.items()),
        "TableRows": {(1 << at, log) for at, log in enumerate(space.table_logs)},
        "Scale": set(space.scales.items()),
    }


def _program(space: QuerySpace | GivenSpace) -> Program:
    rules = (_FOLDER / "rules.dl").read_text(encoding="utf-8")
    if isinstance(space, GivenSpace):
        return load(rules + "\n.input LocalCost\n", functions=_functions(space))
    costs = (_FOLDER / "costs.dl").read_text(encoding="utf-8")
    return load(rules + costs, functions={**_functions(space), **_costs(space)})


Function = Callable[..., object]


def _functions(space: Space) -> Mapping[str, Function]:
    def alternatives(expression: int, wanted: int) -> int:
        return len(space.alternatives((expression, wanted)))

    @cache
    def alternative(expression: int, wanted: int, index: int) -> Tuple:
        found = space.alternatives((expression, wanted))[index]
        return found.logical, found.physical, *(found.left or (0, 0)), *(found.right or (0, 0))

    return {"alternatives": alternatives, "alternative": alternative}


def _costs(space: QuerySpace) -> Mapping[str, Function]:
    def summary(expression: int, log: int) -> int:
        return log if expression <= space.whole else min(log, space.groups)

    def scan(expression: int, wanted: int, index: int, table: int, log: int, scale: int) -> int:  # noqa: PLR0917 - of a rule
        node = (expression, wanted)
        return space.scan_cost_of(node, space.alternatives(node)[index], table, log, scale)

    def operator(expression: int, wanted: int, index: int, left: int, right: int, scale: int) -> int:  # noqa: PLR0917 - of a rule
        node = (expression, wanted)
        return space.cost_of(node, space.alternatives(node)[index], left, right, scale)

    def output(expression: int, wanted: int, log: int) -> int:
        return space.own_of((expression, wanted), log)

    return {"summary": summary, "scanCost": scan, "operatorCost": operator, "outputCost": output}
