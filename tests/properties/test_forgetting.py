"""Windows and lifetimes under random updates: a naive memory of all that came tells what is left, and views are exact on it.

Times repeat, come late and are left out; a tuple comes again before and after it has expired, and goes in between.
"""

from __future__ import annotations

import os
import warnings

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.properties.counting import count_sequence

from whence import Session, Update, load
from whence.lang.program import lasting
from whence.lang.types import Tuple
from whence.reference import evaluate

EXAMPLES = int(os.environ.get("WHENCE_EXAMPLES", "60"))
DURATION = {"life": 5.0, "late": 3.0, "both": 4.0}
ROWS = {"few": (2, ()), "each": (1, (0,)), "both": (3, (1,))}
TEXT = """
.decl life(x:number, y:number)
.decl late(x:number, y:number)
.decl few(x:number, y:number)
.decl each(x:number, y:number)
.decl both(x:number, y:number)
.input life, late, few, each, both
.lifetime life 5
.window late(time=3)
.window few(rows=2)
.window each(rows=1, by=x)
.window both(rows=3, by=y)
.lifetime both 4
.decl way(x:number, y:number)
way(x, y) :- life(x, y) ; late(x, y) ; few(x, y).
way(x, z) :- way(x, y), each(y, z).
.decl none(x:number)
none(x) :- both(x, _), !way(x, _).
.decl size(x:number, n:number)
size(x, n) :- both(x, _), n = count : { way(x, _) }.
.output way, none, size
"""
NAMES = ("life", "late", "few", "each", "both")
TIME = st.one_of(st.none(), st.none(), st.integers(0, 14).map(float))
UPDATE = st.tuples(
    st.sampled_from("+++-"), st.sampled_from(NAMES), st.tuples(st.integers(0, 2), st.integers(0, 2)), TIME
).map(lambda drawn: Update(*drawn))
EPOCHS = st.lists(st.tuples(st.lists(UPDATE, max_size=5), TIME), min_size=1, max_size=8)


class Memory:
    """All tuples with when they came, in that order; what is to be forgotten is looked for in the whole of it."""

    def __init__(self) -> None:
        self.clock = 0.0
        self.came: dict[str, list[tuple[Tuple, float]]] = {name: [] for name in NAMES}

    def apply(self, updates: list[Update], now: float | None) -> None:
        times = [time for time in (now, *(each.time for each in updates)) if time is not None]
        self.clock = max([self.clock, *times])
        for op, name, row, time in updates:
            before = [when for known, when in self.came[name] if known == row]
            self.came[name] = [each for each in self.came[name] if each[0] != row]
            if op == "+":
                self.came[name].append((row, max([self.clock if time is None else time, *before])))
        for name, duration in DURATION.items():
            self.came[name] = [each for each in self.came[name] if each[1] > self.clock - duration]
        for name, (size, by) in ROWS.items():
            kept = self.came[name]
            self.came[name] = [
                each
                for at, each in enumerate(kept)
                if sum(all(one[0][c] == each[0][c] for c in by) for one in kept[at + 1 :]) < size
            ]

    def base(self) -> dict[str, set[Tuple]]:
        return {name: {row for row, _ in rows} for name, rows in self.came.items()}


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@given(EPOCHS)
def test_what_is_not_forgotten_makes_the_views(epochs: list[tuple[list[Update], float | None]]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = load(TEXT)
        session, memory = Session(program), Memory()
        total: dict[str, set[Tuple]] = {}
        for updates, now in epochs:
            tried = session.trial(updates, now)
            changes = session.apply(updates, now)
            assert sorted(map(repr, tried)) == sorted(map(repr, changes))
            memory.apply(updates, now)
            for op, name, row, _ in changes:
                (total.setdefault(name, set()).remove if op == "-" else total.setdefault(name, set()).add)(row)
            expected = evaluate(lasting(program), memory.base())
            assert session.base() == memory.base()
            assert session.views() == expected
            assert {name: total.get(name, set()) for name in expected} == expected
    count_sequence()
