"""The values that a fact to be inserted may have where a goal leaves them open."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count, islice, product
from math import prod

from whence.lang.fit import fits as can_hold
from whence.lang.program import Aggregation, Atom, Const, Negation, Program, Rule, Term, Var
from whence.lang.scalars import is_scalar
from whence.lang.tree import walk
from whence.lang.types import FLOAT, NUMBER, SYMBOL, UNSIGNED, Kind, Nullable, Value, base, is_whole
from whence.provenance.derive import Deriver
from whence.provenance.graph import ANY, Absence, Fact
from whence.provenance.patterns import completed, has_wildcards, is_alike
from whence.provenance.probability import depends_on
from whence.provenance.show import show_value
from whence.reference.solve import Environment

_VALUES = 25  # tried for a value that may be anything
_FACTS = 60  # tried for a fact with wildcards


class Fillings:
    """Fills facts with wildcards for a question about a fact, in the state that a deriver shows.

    `made_up` are the values that nothing else has, of all states; `is_cut` says that there were more facts than are tried.
    """

    def __init__(self, deriver: Deriver, fact: Fact) -> None:
        self.deriver = deriver
        self.fact = fact
        self.made_up: set[Value] = set()
        self._base = frozenset(deriver.program.base_relations)
        self._watched = _watched(deriver.program)
        self.begin()

    def begin(self) -> None:
        """Another state."""
        self.is_cut = False
        self._samples: dict[Kind, list[Value]] | None = None
        self._invented: dict[Kind, list[Value]] = {}

    def invented(self, fact: Fact) -> int:
        """How many values of the fact are made up in this state."""
        return sum(any(value in each for each in self._invented.values()) for value in fact.tuple)

    def facts(
        self, goal: Absence, rule: Rule | None = None, bound: Environment | None = None, atom: Atom | None = None
    ) -> list[Fact]:
        """Facts that fit. What may be anything becomes a value that the question, the rules or facts have, or one that nothing
        has; where nothing else asks for that value, one is enough.
        """
        fields = self.deriver.program.relations[goal.relation].fields
        choices: list[list[Value]] = []
        for at, value in enumerate(goal.pattern):
            if not has_wildcards(value):
                choices.append([value])  # type: ignore[list-item]
                continue
            if new_key := self._new_key(goal.relation, at):
                choices.append(new_key)
                continue
            beside = sorted({row[at] for row in self.deriver.state.sample(goal.relation, _VALUES)}, key=show_value)
            others = self._values(fields[at].kind, bound or {})
            matters = rule is None or atom is None or _is_shared(atom.args[at], rule)
            listed = [*others, *beside] if matters else [*beside, *others]
            alike = list(dict.fromkeys(completed(value, each) for each in listed if is_alike(value, each)))
            if not matters:
                # Any will do, but for one that a negation or an aggregate does not like: it has nothing against a new one.
                new = self._invented[fields[at].kind] if value is ANY and goal.relation in self._watched else []
                alike = list(dict.fromkeys([*alike[:1], *new]))
            choices.append(alike)
        types = self.deriver.program.types
        choices = [
            [value for value in each if can_hold(value, field.kind, types)]
            for each, field in zip(choices, fields, strict=True)
        ]
        self.is_cut = self.is_cut or prod(map(len, choices)) > _FACTS
        return [Fact(goal.relation, row) for row in islice(product(*choices), _FACTS)]

    def _new_key(self, relation: str, at: int) -> list[Value]:
        """A value that no row has yet, if the column alone tells the rows of a table apart: any such will do."""
        declared = self.deriver.program.relations[relation]
        if declared.table is None or not any(key.columns == (at,) for key in declared.table.keys):
            return []
        held = self.deriver.state.tables[relation]
        kind = base(declared.fields[at].kind)
        met = [row[at] for row in self.deriver.state.sample(relation, 4 * _VALUES)]
        last = max((value for value in met if isinstance(value, int)), default=0)
        new: Iterable[Value] = count(last + 1) if kind == NUMBER else (f"new{number}" for number in count(1))
        return [next(value for value in new if not held.lookup((at,), (value,)))] if kind in (NUMBER, SYMBOL) else []

    def _values(self, kind: Kind, bound: Environment) -> list[Value]:
        """Values of a kind: those of the question, of an assignment, of other facts and of the rules."""
        known = [value for value in (*self.fact.tuple, *bound.values()) if _is_of(value, kind)]
        values = list(dict.fromkeys([*known, *self._sampled(kind)]))[:_VALUES]
        if kind not in self._invented:
            self._invented[kind] = _another(kind, values)
            self.made_up.update(self._invented[kind])
        return [*values, *self._invented[kind]]

    def _sampled(self, kind: Kind) -> list[Value]:
        """Values of a kind from base facts and from the rules."""
        if self._samples is None:
            found: dict[Kind, set[Value]] = {}
            for name in self._base:
                fields = self.deriver.program.relations[name].fields
                for row in self.deriver.state.sample(name, 4 * _VALUES):
                    for field, value in zip(fields, row, strict=True):
                        found.setdefault(base(field.kind), set()).add(value)
            for part in walk(tuple(self.deriver.program.rules)):
                if isinstance(part, Const):
                    found.setdefault(base(part.kind), set()).add(part.value)
            self._samples = {each: sorted(values - {None}, key=show_value) for each, values in found.items()}
        known = self._samples.get(base(kind), [])
        return [None, *known] if isinstance(kind, Nullable) else known


def _is_of(value: Value, kind: Kind) -> bool:
    """Whether the value is of a kind that is not made of parts."""
    if isinstance(kind, Nullable):
        return value is None or _is_of(value, kind.of)
    if kind == UNSIGNED:
        return isinstance(value, int) and value >= 0
    if is_whole(kind) and kind != NUMBER:
        return is_scalar(value, kind)
    return isinstance(value, _TYPES.get(kind, ())) and not isinstance(value, bool)


_TYPES: dict[Kind, type] = {NUMBER: int, FLOAT: float, SYMBOL: str}


def _another(kind: Kind, known: Iterable[Value]) -> list[Value]:
    """A value that is none of these, if there is one to be made up."""
    taken, kind = set(known), base(kind)
    numbers: Iterable[Value] = count()
    if kind == SYMBOL:
        numbers = (f"new{at}" for at in count(1))
    elif kind == FLOAT:
        numbers = (float(at) for at in count())
    elif kind not in (NUMBER, UNSIGNED):
        return []
    return [next(each for each in numbers if each not in taken)]


def _watched(program: Program) -> set[str]:
    """The relations that a negation or an aggregate depends on."""
    asking = (part for rule in program.rules for part in rule.body if isinstance(part, Negation | Aggregation))
    asked = {part.relation for each in asking for part in walk(each) if isinstance(part, Atom)}
    return {name for each in asked for name in depends_on(program, each)}


def _is_shared(term: Term, rule: Rule) -> bool:
    """Whether a variable of the term stands anywhere else in the rule."""
    names = {part.name for part in walk(term) if isinstance(part, Var)}
    met = [part.name for part in walk(rule) if isinstance(part, Var)]
    return any(met.count(name) > 1 for name in names)
