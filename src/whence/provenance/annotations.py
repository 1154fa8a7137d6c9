"""Annotations of base facts as people give them: `link=0.9`, `link("a", "b")=0.99`, or `link=@cost` for a column."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

from whence.lang.program import Program
from whence.lang.tables import taking_updates
from whence.provenance.base import check_relation, parse_fact
from whence.provenance.copies import Rows
from whence.provenance.derivations import CannotExplain
from whence.provenance.graph import Fact
from whence.provenance.show import show_fact

V = TypeVar("V")


class Annotations(Generic[V]):
    """What was given for base facts. What names one fact is stronger than what names a relation.

    >>> from whence import load
    >>> program = load(".decl link(x:symbol, cost:number) .input link .output link")
    >>> given = Annotations(['link=@cost', 'link("b", 7)=1'], program, float)
    >>> given(Fact("link", ("a", 3))), given(Fact("link", ("b", 7))), given(Fact("other", ()))
    (3.0, 1.0, None)
    """

    def __init__(
        self, specs: Iterable[str], program: Program, parse: Callable[[str], V], *, of_views: bool = False
    ) -> None:
        """Raises ValueError for what does not fit the program. Those `of_views` are given to facts of any relation."""
        self.facts: dict[Fact, V] = {}
        self._rows = Rows(program)
        self._relations: dict[str, Callable[[Fact], V]] = {}
        for spec in specs:
            name, equals, text = spec.rpartition("=")
            if not equals:
                raise ValueError(f"{spec} needs a value: RELATION=VALUE, FACT=VALUE or RELATION=@COLUMN")
            name, text = name.strip(), text.strip()
            if "(" in name:
                fact = parse_fact(name, program)
                if not of_views:
                    _refuse_derived(fact.relation, program)
                self.facts[fact] = parse(text)
                continue
            check_relation(name, program)
            if not of_views:
                _refuse_derived(name, program)
            if text.startswith("@"):
                self._relations[name] = self._from_column(name, text[1:], program, parse)
            else:
                self._relations[name] = _always(parse(text))

    def __call__(self, fact: Fact) -> V | None:
        fact = self._rows.of(fact)
        if fact in self.facts:
            return self.facts[fact]
        of_relation = self._relations.get(fact.relation)
        return None if of_relation is None else of_relation(fact)

    @staticmethod
    def _from_column(name: str, column: str, program: Program, parse: Callable[[str], V]) -> Callable[[Fact], V]:
        names = [each.name for each in program.relations[name].fields]
        if column not in names:
            raise ValueError(f"{name} has no column {column}; it has {', '.join(names)}")
        at = names.index(column)

        def value(fact: Fact) -> V:
            cell = fact.tuple[at]
            try:
                return parse(cell if isinstance(cell, str) else str(cell))
            except ValueError as error:
                raise CannotExplain(f"column {column} of {show_fact(fact)}: {error}") from None

        return value


def _refuse_derived(name: str, program: Program) -> None:
    if name not in program.base_relations and not any(rule.is_fact for rule in program.rules_for(name)):
        base = ", ".join(taking_updates(program))
        raise ValueError(f"{name} is derived by rules, and values are given to base facts: those of {base}")


def _always(value: V) -> Callable[[Fact], V]:
    return lambda _: value
