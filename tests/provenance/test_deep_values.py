"""Values deeper than Python can recurse are explained like any others."""

from __future__ import annotations

import pytest

from whence import Session, load
from whence.io.json_text import read_json, write_json
from whence.lang.deep import compounded
from whence.lang.types import Tuple, Value, Variant
from whence.provenance import Fact, contributions, graph_of, how, probability, whatif, why, whynot
from whence.provenance.export import EXPORTS
from whence.provenance.show import show_value
from whence.provenance.to_json import graph_to_json, why_to_json, whynot_to_json

DEPTH = 1_200
TEXT = """
.type Stack = [top:number, below:Stack]
.type Tree = Leaf {} | Node { t:Tree, n:number }
.decl stack(s:Stack, t:Tree)
.input stack
.decl seen(s:Stack, t:Tree)
seen(s, t) :- stack(s, t).
.decl odd(s:Stack, t:Tree)
odd(s, t) :- seen(s, t), !stack(s, t).
.decl other(s:Stack, t:Tree)
other(s, t) :- stack(s, t), !stack([0, s], t).
.output seen, odd, other
"""


@pytest.fixture(scope="module")
def row() -> Tuple:
    stack: Value = None
    tree: Value = Variant("Leaf", ())
    for at in range(DEPTH):
        stack, tree = compounded((at, stack)), compounded(Variant("Node", (tree, at)))
    return stack, tree


@pytest.fixture(scope="module")
def session(row: Tuple) -> Session:
    return Session(load(TEXT), facts={"stack": [row]})


def test_every_question_is_answered(session: Session, row: Tuple) -> None:
    fact = Fact("other", row)
    answer = why(session, *fact)
    assert len(str(answer)) > 4 * DEPTH
    graph = graph_of(session, *fact)
    assert how(graph, fact).startswith("{{stack([")
    assert probability(session, "seen", row, lambda _: 0.5).low == 0.5
    assert contributions(session, "seen", row)[0].shapley == 1.0
    assert whatif(session, without=[Fact("stack", row)]).deleted.keys() == {"stack", "seen", "other"}
    for data in (why_to_json(answer), graph_to_json(graph, session.program)):
        assert read_json(write_json(data)) is not None  # type: ignore[arg-type]
    for export in EXPORTS.values():
        assert export(graph, session.program)


def test_what_is_missing_is_told(session: Session, row: Tuple) -> None:
    stack, tree = row
    assert whynot(session, "odd", row).repairs == ()
    missing = Fact("stack", (compounded((1, stack)), tree))
    answer = whynot(session, "seen", missing.tuple)
    assert answer.repairs[0].insertions == (missing,)
    assert whynot_to_json(answer)["repairs"]


def test_deep_values_are_shown(row: Tuple) -> None:
    text = show_value(row[0])
    assert text.startswith(f"[{DEPTH - 1}, [{DEPTH - 2}, ")
    assert text.endswith("nil" + "]" * DEPTH)
