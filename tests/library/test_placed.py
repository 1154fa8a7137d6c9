"""The views of the library live on nodes just as well: all nodes together have what networkx computes."""

from __future__ import annotations

import re
from random import Random

import pytest
from tests.library.views import VIEWS

from whence import Program, load
from whence.lang.types import NUMBER, Tuple
from whence.network import Network
from whence.plan import UnsuitableStrategy

NODES, EPOCHS = 5, 4
# Relations live by their first argument, but for these: by another one, or everywhere.
_PLACES = {"seed": 1, "reach": None}
# Positive and linear, without aggregates in their recursion: strategies with provenance run them too.
_LINEAR = {
    "Reachable",
    "Within",
    "Horizon",
    "Cycles",
    "SimplePaths",
    "Near",
    "ActiveRegions",
    "ActiveRegionsWithRim",
    "SameGeneration",
}


def placed(text: str) -> Program:
    def declared(found: re.Match[str]) -> str:
        columns = [each.strip() for each in found[2].split(",")]
        place = _PLACES.get(found[1], 0)
        marked = [f"@{each}" if at == place else each for at, each in enumerate(columns)]
        return f".decl {found[1]}({', '.join(marked)})" + ("" if place is not None else " everywhere")

    if "RegionSizes" in text:
        text = text.replace("symbol", "number")  # a region is a node, where its size is known
    return load(re.sub(r"\.decl (\w+)\(([^)]*)\)", declared, text))


def follow(name: str, strategy: str) -> None:
    view = VIEWS[name]
    program = placed(view.program)
    draw = Random(name)
    network = Network(program, strategy=strategy, nodes=range(NODES))
    base: dict[str, set[Tuple]] = {each.relation: set() for each in program.transfers if each.kind == "input"}
    for epoch in range(EPOCHS):
        updates = []
        for relation, rows in base.items():
            fields = program.relations[relation].fields
            for _ in range(3 if epoch else 8):
                if epoch and rows and draw.random() < 0.5:
                    row = draw.choice(sorted(rows))
                    rows.discard(row)
                    updates.append(("-", relation, row))
                else:
                    row = tuple(
                        draw.choice("ab") if each.kind != NUMBER else draw.randrange(NODES if at < 2 else 3)
                        for at, each in enumerate(fields)
                    )
                    rows.add(row)
                    updates.append(("+", relation, row))
        network.apply(updates)
        expected = view.expected(base)
        assert {each: network.relation(each) for each in expected} == expected


@pytest.mark.parametrize("strategy", ["support", "dred"])
@pytest.mark.parametrize("name", VIEWS)
def test_views_on_nodes(name: str, strategy: str) -> None:
    follow(name, strategy)


@pytest.mark.parametrize("strategy", ["relative", "absorption"])
@pytest.mark.parametrize("name", VIEWS)
def test_views_with_provenance(name: str, strategy: str) -> None:
    if name in _LINEAR:
        follow(name, strategy)
    else:
        with pytest.raises(UnsuitableStrategy, match=f"{strategy} cannot run"):
            follow(name, strategy)
