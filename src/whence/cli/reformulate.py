"""`whence reformulate`: a query in terms of views, what a redefinition changes, or the rules that maintain a view."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from whence.cli.evaluate import read_inputs, reported_errors
from whence.cli.functions import load_functions
from whence.cli.programs import FunctionsOption
from whence.cli.progress import Progress
from whence.cli.reasoning import named_query
from whence.cli.terminal import err, out, show
from whence.lang.load import Functions
from whence.lang.types import Tuple
from whence.reasoning import NotConjunctive, Query
from whence.reasoning import reformulate as search
from whence.reasoning.costs import Estimates, Observed, observe
from whence.reasoning.forms import Sum
from whence.reasoning.maintenance import AFTER, CHANGE, maintenance
from whence.reasoning.rewriting import Reformulation, View, normal_form
from whence.reasoning.show import rules_of
from whence.reasoning.transfer import Transfer, to_bags, to_sets
from whence.session import evaluate

ASSUMED = 1_000  # rows of a relation that nothing is known of


class Meaning(StrEnum):
    SETS = "sets"
    BAGS = "bags"
    NUMBERS = "numbers"


def reformulate(
    query: Annotated[
        str, typer.Argument(metavar="QUERY", help="A relation as PROGRAM:RELATION, or a program with one output.")
    ],
    *,
    view: Annotated[
        list[str] | None,
        typer.Option(metavar="VIEW", help="A view that is there: a relation of the same program, or PROGRAM:RELATION."),
    ] = None,
    was: Annotated[
        str | None,
        typer.Option(
            metavar="OLD", help="How the relation was defined. Says what has to be added to the rows it had then."
        ),
    ] = None,
    changing: Annotated[
        list[str] | None,
        typer.Option(
            metavar="BASE", help="A base relation that changes. Says what has to be added to the relation then."
        ),
    ] = None,
    meaning: Annotated[
        Meaning,
        typer.Option(
            "--for", help="What the views hold: rows, rows with how often they are derived, or signed numbers."
        ),
    ] = Meaning.BAGS,
    facts: Annotated[
        Path | None, typer.Option("-F", "--fact-dir", metavar="DIR", help="Facts to tell costs by.", exists=True)
    ] = None,
    seconds: Annotated[float, typer.Option(min=0, metavar="SECONDS", help="How long to search.")] = 1.0,
    functions: FunctionsOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Say a query in terms of views, perhaps taking away what they have too much, in the cheapest way found.

    Rules with a minus take derivations away. The exit code is 1 if that is not right for what the views hold, 2 if the question
    cannot be asked.
    """
    if changing and (was or view):
        raise typer.BadParameter("goes with neither --was nor --view", param_hint="--changing")
    with reported_errors():
        try:
            functors = load_functions(functions)
            asked = named_query(query, functors)
            old = named_query(was, functors) if was else None
            views = [_view(name, query, asked, functors) for name in view or ()] + ([old] if old else [])
            question = _Question(asked, old, views, changing or [], _observed([asked, *views], facts), meaning)
            found = question.answer(seconds)
            transfer = question.transfer(found.sum, facts)
        except NotConjunctive as error:
            show(err, f"error: {error}")
            raise typer.Exit(2) from None
    _report(asked, found, transfer, meaning, by=str(facts or ""), as_json=as_json)
    if not transfer.holds:
        raise typer.Exit(1)


@dataclass(frozen=True)
class _Question:
    """`old` is among the views, too."""

    asked: Query
    old: Query | None
    views: list[Query]
    changing: list[str]
    observed: Mapping[str, Observed]
    meaning: Meaning

    def answer(self, seconds: float) -> Reformulation:
        if self.changing:
            known = Estimates({**self.observed, **self._changed()})
            return maintenance(View(self.asked.relation, self.asked.parts), self.changing, known, seconds=seconds)
        parts = self.asked.parts
        if self.old is not None:
            if self.old.signature != self.asked.signature:
                raise NotConjunctive(f"{self.asked.relation} and what it was do not have the same columns")
            parts += tuple(replace(part, sign=-part.sign) for part in self.old.parts)
        views = [View(each.relation, each.parts) for each in self.views]
        return search(
            normal_form(parts), views, Estimates(self.observed), indexed=True, seconds=seconds, accepts=self._accepts
        )

    def _accepts(self, found: Sum) -> bool:
        return self.meaning is not Meaning.SETS or all(number > 0 for number in found.values())

    def _changed(self) -> dict[str, Observed]:
        """Of a relation that changes, one row in a hundred is assumed to."""
        known = {}
        for name in self.changing:
            if name not in self.asked.base:
                raise NotConjunctive(f"{self.asked.relation} does not rest on a base relation {name}")
            seen = self.observed[name]
            few = max(1, seen.rows // 100)
            known[name + AFTER] = seen
            known[name + CHANGE] = Observed(few, tuple(min(few, each) for each in seen.distinct), seen.ranges)
        return known

    def transfer(self, found: Sum, facts: Path | None) -> Transfer:
        if self.meaning is Meaning.NUMBERS:
            return Transfer(True, "signed numbers ask for nothing more")
        if self.meaning is Meaning.BAGS:
            return to_bags(self.asked)
        if self.changing or self.old:
            return Transfer(False, "a change tells how many derivations come and go, which sets do not know")
        return to_sets(self.asked, found, _rows(self.asked, facts) if facts else None)


def _view(name: str, query: str, asked: Query, functors: Functions | None) -> Query:
    if name == asked.relation:
        raise typer.BadParameter(f"{name} is what is asked for", param_hint="--view")
    if name in asked.program.relations or not (":" in name or Path(name).is_file()):
        name = f"{query if Path(query).is_file() else query.rpartition(':')[0]}:{name}"
    return named_query(name, functors)


def _observed(queries: Iterable[Query], facts: Path | None) -> dict[str, Observed]:
    """What is known of all relations: by facts, or assumed to be the same of all."""
    observed: dict[str, Observed] = {}
    for each in queries:
        rows = _rows(each, facts) if facts else {}
        for name, relation in each.program.relations.items():
            arity = relation.arity
            assumed = Observed(ASSUMED, (ASSUMED // 5,) * arity, (None,) * arity)
            observed[name] = observe(rows[name], arity) if facts else assumed
    return observed


def _rows(query: Query, facts: Path) -> dict[str, set[Tuple]]:
    with Progress(err, "reading", quiet=False) as progress:
        given = read_inputs(query.program, facts, progress)
        progress.text = "evaluating"
        return evaluate(query.program, given)


def _report(
    asked: Query, found: Reformulation, transfer: Transfer, meaning: Meaning, *, by: str, as_json: bool
) -> None:
    rules = list(rules_of(found.sum, asked.relation))
    if as_json:
        answer = {
            "rules": rules,
            "cost": round(found.cost),
            "cost_without_views": round(found.original_cost),
            "steps": found.tried,
            "complete": found.is_complete,
            "for": str(meaning),
            "holds": transfer.holds,
            "reason": transfer.reason,
        }
        typer.echo(json.dumps(answer, ensure_ascii=False, indent=2))
        return
    if not transfer.holds:
        show(err, f"error: for {meaning} this is not right: {transfer.reason}")
        return
    for line in rules or [f"nothing changes: {asked.relation} stays as it is"]:
        show(out, line)
    basis = f"by the facts in {by}" if by else f"if every relation has {ASSUMED:,} rows"
    instead = "" if found.sum == found.original else f" instead of {found.original_cost:,.0f}"
    show(out, f"cost: {found.cost:,.0f} rows{instead}, {basis}")
    show(out, f"right for {meaning}: {transfer.reason}")
