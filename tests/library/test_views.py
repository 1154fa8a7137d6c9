"""The views of the library are what networkx computes, after every epoch of insertions and deletions."""

from __future__ import annotations

import os
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.library.views import VIEWS

from whence import Session, Update, load
from whence.cli.evaluate import wanted_of
from whence.lang.preprocess import LIBRARY
from whence.lang.program import Relation
from whence.lang.types import NUMBER, Tuple
from whence.plan import compile_plan

NODES = st.integers(0, 5)
EXAMPLES = int(os.environ.get("WHENCE_EXAMPLES", "0")) // 100 or 15


def test_every_component_has_an_oracle() -> None:
    library = "".join(path.read_text(encoding="utf-8") for path in LIBRARY.glob("*.dl"))
    offered = set(re.findall(r"^\.comp (\w+)", library, re.MULTILINE))
    # Edges only makes links go both ways for others; sizes are checked with the regions that they are sizes of.
    assert set(VIEWS) == offered - {"Edges", "RegionSizes"}


@pytest.mark.parametrize("name", VIEWS)
@settings(max_examples=EXAMPLES)
@given(data=st.data())
def test_views_follow_their_facts(name: str, data: st.DataObject) -> None:
    view = VIEWS[name]
    program = load(view.program)
    assert not program.warnings
    rows = {
        each.relation: _rows(program.relations[each.relation]) for each in program.transfers if each.kind == "input"
    }
    base: dict[str, set[Tuple]] = {relation: set() for relation in rows}
    session = Session(program)
    for _ in range(data.draw(st.integers(2, 5), "epochs")):
        updates = []
        for relation, row in rows.items():
            there = sorted(base[relation])
            gone = data.draw(st.lists(st.sampled_from(there), max_size=3), relation) if there else []
            come = data.draw(st.lists(row, max_size=4 if there else 10), relation)
            updates += [Update("-", relation, each) for each in gone] + [Update("+", relation, each) for each in come]
            base[relation] = (base[relation] - set(gone)) | set(come)
        session.apply(updates)
        expected = view.expected(base)
        assert {relation: set(session.relation(relation)) for relation in expected} == expected


@pytest.mark.parametrize("name", VIEWS)
def test_no_view_is_evaluated_anew(name: str) -> None:
    program = load(VIEWS[name].program)
    plan = compile_plan(program, wanted_of(program))
    assert {stratum.why_not_native for stratum in plan.strata if not stratum.native} == set()


def _rows(relation: Relation) -> st.SearchStrategy[Tuple]:
    """Small numbers, so that nodes and costs meet; nodes come first."""
    columns = [
        (NODES if at < 2 else st.integers(0, 3)) if each.kind == NUMBER else st.sampled_from("ab")
        for at, each in enumerate(relation.fields)
    ]
    return st.tuples(*columns)
