"""Questions about rows, as viewers ask them, and their answers as JSON. They are answered in a copy of the process."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal as OneOf
from typing import get_args

from whence.io.changes import Update
from whence.lang.program import Program, lasting
from whence.lang.types import Tuple
from whence.limits import RunawayError
from whence.provenance.annotations import Annotations
from whence.provenance.base import parse_fact
from whence.provenance.derivations import CannotExplain
from whence.provenance.derive import Deriver
from whence.provenance.expand import Bounds
from whence.provenance.graph import DerivationGraph, Fact
from whence.provenance.how import how
from whence.provenance.matching import FactPattern, parse_pattern
from whence.provenance.page import nearest
from whence.provenance.picture import draw
from whence.provenance.probability import Budget, probability
from whence.provenance.repairs import Effort
from whence.provenance.responsibility import contributions
from whence.provenance.show import show_fact
from whence.provenance.to_json import (
    JsonObject,
    changes_to_json,
    contributions_to_json,
    fact_to_json,
    graph_to_json,
    how_to_json,
    probability_to_json,
    why_to_json,
    whynot_to_json,
)
from whence.provenance.views import graph_of_views
from whence.provenance.whatif import whatif
from whence.provenance.why import graph_of, why
from whence.provenance.whynot import whynot
from whence.reference import FunctionError
from whence.semiring import NotInThisSemiring
from whence.serve.apart import Apart
from whence.serve.live import LiveViews
from whence.session import Session

Kind = OneOf["why", "graph", "how", "responsibility", "probability", "whatif", "whynot"]
KINDS: tuple[Kind, ...] = get_args(Kind)
_SEMIRINGS = ("lineage", "posbool", "why", "polynomial")
_CHANGES = 1_000  # of a what-if that are sent; all of them are counted
_DRAWN = 60


@dataclass(frozen=True)
class Question:
    """`fact` as it is written in a program. `epoch` is the one asked about, None for the last. `chances` are probabilities
    (`link=0.9`), for one who asks for a probability; `among` are the base relations that may be responsible, all if there are
    none; `facts` is how many a graph may have.
    """

    kind: Kind
    fact: str
    epoch: int | None = None
    chances: tuple[str, ...] = ()
    among: tuple[str, ...] = ()
    facts: int = 2_000


class CannotAnswer(ValueError):
    """The reason is for the viewer."""


class Answers:
    """Asks in copies of the process. Answers are kept for a while: several viewers look at the same."""

    def __init__(self, live: LiveViews, apart: Apart) -> None:
        self.live = live
        self.apart = apart
        self._kept = lru_cache(maxsize=256)(self._asked)

    def ask(self, question: Question) -> bytes:
        """JSON. Raises CannotAnswer, TooLate, TooBusy, NotRetained."""
        try:
            asked = parse_pattern(question.fact, self.live.program)
            self.live.relation(asked.relation)
        except ValueError as error:
            raise CannotAnswer(str(error)) from None
        epoch = self.live.epoch
        self._refuse_unknown(epoch if question.epoch is None else question.epoch)
        return self._kept(question, epoch)

    def _refuse_unknown(self, epoch: int) -> None:
        past = self.live.history.between(epoch, self.live.epoch)
        for name in self.live.base & {rule.head.relation for rule in self.live.program.rules if not rule.is_fact}:
            if any(name in each.changes.inserted or name in each.changes.deleted for each in past):
                raise CannotAnswer(f"{name} is both put in and derived: what was put in by epoch {epoch} is not known")

    def _asked(self, question: Question, _epoch: int) -> bytes:
        found = self.apart.run(self.live.lock, lambda: self._answer(question))
        is_answer, text = found[:1] == b"+", found[1:]
        if not is_answer:
            raise CannotAnswer(text.decode())
        return text

    def _answer(self, question: Question) -> bytes:
        """In the copy. What is wrong with a question is said, too."""
        try:
            epoch = self.live.epoch if question.epoch is None else question.epoch
            session = self._session(epoch)
            fact = _asked(question.fact, session)
            answer = _ANSWERS[question.kind](session, fact, question, self.apart.seconds)
            named: JsonObject = {"question": question.kind, "epoch": epoch, "asked": fact_to_json(fact)}
            return b"+" + json.dumps(named | answer, ensure_ascii=True).encode()
        except (CannotExplain, NotInThisSemiring, RunawayError, FunctionError, ValueError) as error:
            return b"-" + str(error).encode("utf-8", "replace")
        except TimeoutError:
            return f"-no answer was found in {self.apart.seconds:g} s".encode()
        except (MemoryError, RecursionError):
            return b"-the answer is too large"

    def _session(self, epoch: int) -> Session:
        session, program = self.live.session, self.live.program
        if epoch == self.live.epoch:
            return session
        if any(each.window or each.lifetime for each in program.relations.values()):
            return Session(lasting(program), facts=self._base_at(epoch))
        # Going back costs what has changed since, and this session is a copy.
        differences = {
            name: self.live.history.difference(name, self.live.epoch, epoch) for name in sorted(self.live.base)
        }
        undo = [Update("-", name, row) for name, each in differences.items() for row in each.gone]
        redo = [Update("+", name, row) for name, each in differences.items() for row in each.added]
        session.apply(undo + redo, checked=True)  # rows as relations hold them, copies with their numbers
        return session

    def _base_at(self, epoch: int) -> dict[str, set[Tuple]]:
        def then(name: str, rows: set[Tuple]) -> set[Tuple]:
            difference = self.live.history.difference(name, self.live.epoch, epoch)
            return (rows - difference.gone) | difference.added

        return {name: then(name, rows) for name, rows in self.live.session.base().items()}


def _asked(text: str, session: Session) -> Fact:
    """The fact, or one of the rows that are equal in all that is shown of them."""
    asked = parse_pattern(text, session.program)
    if isinstance(asked, FactPattern) and session.program.relations[asked.relation].hidden:
        for fact in Deriver(session).matching(asked):
            return fact
    return asked if isinstance(asked, Fact) else parse_fact(text, session.program)


_Answer = Callable[[Session, Fact, Question, float], JsonObject]


def _why(session: Session, fact: Fact, _: Question, seconds: float) -> JsonObject:
    return why_to_json(why(session, *fact, bounds=Bounds(seconds=seconds / 2)))


def _graph(session: Session, fact: Fact, question: Question, seconds: float) -> JsonObject:
    whole = graph_of(session, *fact, bounds=Bounds(facts=question.facts, seconds=seconds / 2))
    graph = graph_of_views(whole, session.program)
    drawn = nearest(graph, _DRAWN)
    links = {each: f"#/ask/why/{show_fact(each)}" for each in drawn.facts}
    return {
        "graph": graph_to_json(graph, session.program),
        "picture": draw(drawn, links),
        "drawn": len(drawn.derivations),
        "of": sum(map(bool, graph.derivations.values())),
    }


def _how(session: Session, fact: Fact, _: Question, seconds: float) -> JsonObject:
    graph = graph_of(session, *fact, bounds=Bounds(seconds=seconds / 2))
    if graph.cut is not None:
        raise CannotExplain(f"the derivations were cut off at {graph.cut.reason}")
    values: dict[str, str | None] = {}
    for name in _SEMIRINGS:
        try:
            values |= _value(graph, fact, name, session.program)
        except TimeoutError:
            values[name] = None
            break
    return how_to_json(fact, values)


def _value(graph: DerivationGraph, fact: Fact, name: str, program: Program) -> dict[str, str | None]:
    try:
        return {name: how(graph, fact, name, program=program)}
    except NotInThisSemiring:
        return {"series": f"{how(graph, fact, 'series', program=program)} + …"}


def _responsibility(session: Session, fact: Fact, question: Question, seconds: float) -> JsonObject:
    found = contributions(session, *fact, among=question.among or None, seconds=seconds / 3)
    return contributions_to_json(fact, found)


def _probability(session: Session, fact: Fact, question: Question, seconds: float) -> JsonObject:
    given = Annotations(question.chances, session.program, _chance)

    def chance(base: Fact) -> float:
        value = given(base)
        return 1.0 if value is None else value

    return probability_to_json(fact, probability(session, *fact, chance, budget=Budget(seconds=seconds / 3)))


def _chance(text: str) -> float:
    value = float(text)
    if not 0 <= value <= 1:
        raise ValueError(f"{text} is not a probability, a number between 0 and 1")
    return value


def _whatif(session: Session, fact: Fact, _: Question, __: float) -> JsonObject:
    is_there = fact.tuple in session.relation(fact.relation)
    changes = whatif(session, without=[fact]) if is_there else whatif(session, given=[fact])
    listed = [each for at, each in zip(range(_CHANGES), changes, strict=False)]
    counts = {
        name: {"+": len(changes.inserted.get(name, ())), "-": len(changes.deleted.get(name, ()))}
        for name in session.program.relations
        if name in changes.inserted or name in changes.deleted
    }
    return {"op": "-" if is_there else "+", "counts": counts, "total": len(changes), **changes_to_json(listed)}


def _whynot(session: Session, fact: Fact, _: Question, seconds: float) -> JsonObject:
    return whynot_to_json(whynot(session, *fact, effort=Effort(seconds=seconds / 2)))


_ANSWERS: Mapping[Kind, _Answer] = {
    "why": _why,
    "graph": _graph,
    "how": _how,
    "responsibility": _responsibility,
    "probability": _probability,
    "whatif": _whatif,
    "whynot": _whynot,
}
