"""A session that is put down after every epoch and taken up again is the session that it was."""

from __future__ import annotations

import os
import warnings

import pytest
from hypothesis import HealthCheck, given, settings
from tests.properties.excuses import LIMITS, LOOSE, follow
from tests.properties.programs import Run, runs

from whence import Session, Update, load
from whence.backends.local.image import split
from whence.lang.types import Tuple
from whence.limits import RunawayError
from whence.prepared import prepare
from whence.reference import evaluate

EXAMPLES = int(os.environ.get("WHENCE_EXAMPLES", "40"))


def taken_up(session: Session) -> Session | None:
    image = session.image()
    if image is None:
        return None
    joined = b"".join(image.pieces)  # nothing of the session's memory is left in it
    pieces = split(image.head, memoryview(joined))
    found = Session.resumed(
        prepare(session.program, strategy=session.strategy), image._replace(pieces=pieces), limits=LOOSE
    )
    assert found is not None
    return found


@settings(
    max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much]
)
@given(run=runs())
def test_views_and_changes_match_the_reference(run: Run) -> None:
    base: dict[str, set[Tuple]] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            sessions = [Session(run.program, strategy=each, limits=LOOSE) for each in ("support", "dred")]
            for epoch in run.epochs:
                follow(base, epoch)
                expected = evaluate(run.program, base, limits=LIMITS)
                for at, session in enumerate(sessions):
                    before = session.views()
                    again = taken_up(session) or session
                    assert again.views() == before
                    assert again.base() == session.base()
                    told, known = again.apply(epoch), session.apply(epoch) if again is not session else None
                    if known is not None:
                        assert {(op, name, row) for op, name, row, _ in told} == {
                            (op, name, row) for op, name, row, _ in known
                        }
                    assert again.views() == expected
                    sessions[at] = again
        except RunawayError:
            return


def test_values_of_every_kind_and_words_that_were_given_up() -> None:
    text = """
    .type Pair = [a:symbol, b:number]
    .type Tree = Leaf {x:number} | Fork {left:Tree, right:Tree} | None {}
    .decl item(name:symbol, big:number, real:float, u:unsigned) .input item
    .decl made(p:Pair, t:Tree, l:list<symbol>) made([n, b], $Fork($Leaf(b), $None()), [n, "end"]) :- item(n, b, _, _).
    .decl most(n:number) most(max b : { item(_, b, _, _) }).
    .decl other(name:symbol?, n:number?) other(n, nil) :- item(n, b, _, _), b > 9. other(nil, 1) :- item(_, _, _, _).
    .output made, most, other
    """
    program = load(text)
    session = Session(program)
    rows = [(f"{number} ö\ud800", number << 40, number / 3, (1 << 64) - number - 1) for number in range(50)]
    session.apply([Update("+", "item", row) for row in rows])
    session.apply([Update("-", "item", row) for row in rows[::2]])
    session.backend.dictionary.reclaim()
    for _ in range(3):
        again = taken_up(session)
        assert again is not None
        assert again.views() == session.views()
        changes = [Update("-", "item", rows[1]), Update("+", "item", rows[0])]
        for each in (session, again):
            each.apply(changes)
            each.apply([Update("+", "item", rows[1]), Update("-", "item", rows[0])])
        assert again.views() == session.views() == Session(program, facts=session.base()).views()
        session = again


def test_what_cannot_be_put_down_or_taken_up() -> None:
    text = ".decl p(x:number) .input p q(x) :- p(x). .output q"
    image = Session(load(text), facts={"p": [(1,)]}).image()
    assert image is not None
    assert Session.resumed(prepare(load(text + " q(7).")), image) is None, "another program"
    assert Session.resumed(prepare(load(text), strategy="dred"), image) is None, "another way to count"
    assert Session.resumed(prepare(load("// a comment\n" + text)), image) is not None
    other = image._replace(head={**image.head, "layout": "of another version"})
    assert Session.resumed(prepare(load(text)), other) is None
    assert Session(load(text), strategy="absorption").image() is None, "formulas are not in the tables"
    with pytest.raises(RuntimeError, match="updates have been applied"):
        _ = Session.resumed(prepare(load(text)), image).initial  # type: ignore[union-attr]
