"""Equivalence keys: the printed examples, and that events that agree on them share their trees, whatever the program."""

from __future__ import annotations

import os
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.events.programs import dns, hopping, packets

from whence import load
from whence.events.compare import slow_of, steps_of
from whence.events.keys import equivalence_keys, printed_keys
from whence.events.program import EventProgram, event_program
from whence.events.walk import Walker
from whence.lang.types import Tuple
from whence.provenance.graph import Fact

EXAMPLES = int(os.environ.get("WHENCE_EXAMPLES", "300"))


def made(rules: str, event: str, slow: str, out: str = "out") -> EventProgram:
    name, condition = event.partition("(")[0], slow.partition("(")[0]
    return event_program(load(f".decl {event} .decl {slow} .event {name} .slow {condition} {rules} .output {out}"))


IN, IN_NUMBER = "in(@a:symbol, b:symbol, c:symbol)", "in(@a:symbol, b:symbol, c:number)"
CASES = {
    "lone comparison": (
        made("out(@N,X,P) :- in(@L,X,P), next(@L,N), P > 100.", IN_NUMBER, "next(@a:symbol, b:symbol)"), (0,), (0, 2), (0, 2),
    ),
    "the event chooses a place": (
        made("req(@S,C,Q) :- in(@C,S,Q), allowed(@C). out(@S,C,Q) :- req(@S,C,Q).", IN, "allowed(@a:symbol)"), (0,), (0,), (0, 1),
    ),
    "a constant in the event": (
        made('out(@N,X) :- in(@L,X,"syn"), next(@L,N).', IN, "next(@a:symbol, b:symbol)"), (0,), (0,), (0, 2),
    ),
    "a variable twice in the event": (
        made("out(@N,X) :- in(@L,X,X), next(@L,N).", IN, "next(@a:symbol, b:symbol)"), (0,), (0,), (0, 1, 2),
    ),
    "assigned, then compared": (
        made("out(@N,X) :- in(@L,X,Z), next(@L,N), Y := Z % 2, Y == 0.", IN_NUMBER, "next(@a:symbol, b:symbol)"),
        (0,), (0, 2), (0, 2),
    ),
    "only one of two joins": (
        made("f(@L,C,A) :- e(@L,A,B), C := A + B. out(@L,C,A) :- f(@L,C,A), s(@L,A).",
             "e(@a:symbol, b:number, c:number)", "s(@a:symbol, b:number)"), (0, 1, 2), (0, 1, 2), (0, 1),
    ),
    "a function of which only the output knows": (
        made("out(@L,Y) :- e(@L,Z), s(@L), Y := Z * 2.", "e(@a:symbol, b:number)", "s(@a:symbol)"), (0,), (0, 1), (0,),
    ),
    "packets": (packets(), (0, 2), (0, 2), (0, 2)),
    "packets that count hops": (hopping(), (0, 2), (0, 2, 3), (0, 2, 3)),
    "DNS": (dns(), (0, 1), (0, 1), (0, 1)),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_keys_of_the_papers_and_of_what_they_miss(name: str) -> None:
    events, section, appendix, expected = CASES[name]
    assert equivalence_keys(events).columns == expected
    assert printed_keys(events) == {"section-5.2": section, "appendix-b": appendix}


def test_a_functor_without_a_value_for_some_events_makes_its_argument_a_key() -> None:
    events = made("out(@L,Y) :- e(@L,Z), s(@L), Y := 10 / Z.", "e(@a:symbol, b:number)", "s(@a:symbol)")
    assert equivalence_keys(events).columns == (0, 1)


def test_each_key_says_through_which_rules_it_is_one() -> None:
    keys = equivalence_keys(CASES["only one of two joins"][0]).keys
    assert [(at.relation, at.column, rule) for at, rule in keys[1].path] == [("f", 2, "f#1")]
    assert (keys[1].reason.rule, keys[1].reason.text) == ("out#1", "s is looked up by A")


def test_that_nothing_compresses_is_said() -> None:
    assert [each.code for each in equivalence_keys(CASES["a variable twice in the event"][0]).warnings] == ["W0891"]


# -- soundness --------------------------------------------------------------------------------------------------------


@st.composite
def chains(draw: st.DrawFn) -> tuple[str, int, dict[str, set[Tuple]]]:
    """A program of one to three rules in a row over the numbers 0 and 1, its event's arity, and its slow tuples."""
    length = draw(st.integers(1, 3))
    arities = [draw(st.integers(2, 4)) for _ in range(length + 1)]
    text = [f".decl e{at}({_columns(arity)})" for at, arity in enumerate(arities)]
    slow: dict[str, set[Tuple]] = {}
    for at in range(length):
        event = [
            "L",
            *(draw(st.sampled_from(["A", "B", "C", "0", "1", "A", "B", "C"])) for _ in range(arities[at] - 1)),
        ]
        body = [f"e{at}(@{', '.join(event)})"]
        known = sorted({"L", *event} - {"0", "1"})
        for number in range(draw(st.integers(0, 2))):
            arity = draw(st.integers(1, 3))
            name = f"s{at}_{number}"
            args = ["L", *(draw(st.sampled_from([*known, "X", "Y", "0", "_"])) for _ in range(arity - 1))]
            text.append(f".decl {name}({_columns(arity)}) .slow {name}")
            rows = st.tuples(*[st.integers(0, 1)] * arity)
            slow[name] = draw(st.sets(rows, max_size=4))
            body.append(f"{name}(@{', '.join(args)})")
            known = sorted({*known, *args} - {"0", "1", "_"})
        if draw(st.booleans()):
            left, right = draw(st.sampled_from(known)), draw(st.sampled_from([*known, "0", "1"]))
            operator = draw(st.sampled_from(["+", "*", "-", "/", "%"]))
            body.append(f"Z := ({left} {operator} {right}) band 1")
            known.append("Z")
        if draw(st.booleans()):
            operator = draw(st.sampled_from(["<", "==", "!="]))
            body.append(f"{draw(st.sampled_from(known))} {operator} {draw(st.sampled_from([*known, '0']))}")
        head = [draw(st.sampled_from([*known, "0", "1"])) for _ in range(arities[at + 1])]
        text.append(f"r{at} e{at + 1}(@{', '.join(head)}) :- {', '.join(body)}.")
    return "\n".join([*text, f".event e0 .output e{length}"]), arities[0], slow


def _columns(arity: int) -> str:
    return ", ".join(f"{'' if at else '@'}c{at}:number" for at in range(arity))


def ways(walker: Walker, event: Fact) -> list[object]:
    """What happens to an event, but for the events themselves: rules, places and slow tuples, and where it comes out."""
    events = walker.events
    found = []
    for hop in walker.run(event):
        steps = [
            (step.firing and step.firing.rule, events.place(*step.premises[0].fact), slow_of(step))
            for step in steps_of(hop.tree)
        ]
        found.append((steps, events.place(*hop.tree.fact)))
    return sorted(found, key=repr)


@pytest.mark.filterwarnings("ignore::whence.reference.solve.EvaluationWarning")
@settings(max_examples=EXAMPLES)
@given(chains())
def test_events_that_agree_on_the_keys_go_the_same_way(made: tuple[str, int, dict[str, set[Tuple]]]) -> None:
    text, arity, slow = made
    events = event_program(load(text))
    keys = equivalence_keys(events).columns
    walker = Walker(events, slow)
    classes: dict[Tuple, object] = {}
    for row in product((0, 1), repeat=arity):
        way = ways(walker, Fact("e0", row))
        assert classes.setdefault(tuple(row[key] for key in keys), way) == way
