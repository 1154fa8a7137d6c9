"""Derivations as relations: a table for each rule, with a row for each of its firings.

`r: h(x) :- b(x, y).` becomes

    r.derivations(x, y) :- b(x, y).
    h(x) :- r.derivations(x, y).

A row holds the values of all variables, wildcards included, so that it tells which tuples were used; the tuples' own values
identify them and no numbers are needed. Rules that share a body, as the heads of one statement do, share the table, unless a
head has no value for some of the rows.

A recursion stays as it is, with the tables on top of it: its rounds, and the ranks of its rows, do not depend on what is
recorded, and all firings become rows at once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field, fields, replace

from whence.lang.order import binds
from whence.lang.program import (
    Apply,
    Atom,
    Comparison,
    Literal,
    Program,
    Relation,
    Rule,
    Stratum,
    Transfer,
    Var,
)
from whence.lang.tree import walk
from whence.lang.types import FLOAT, Field
from whence.plan.compile import Plan, compile_plan
from whence.plan.wildcards import name_wildcards

_ALWAYS_DEFINED = frozenset(
    ("+", "-", "*", "min", "max", "cat", "strlen")
)  # but on floats, which may end up as no number


@dataclass(frozen=True, slots=True)
class Recording:
    """Where the firings of a rule are: a relation with a column for each of `variables`. `rule` has no wildcards."""

    relation: str
    variables: tuple[Var, ...]
    rule: Rule


@dataclass(frozen=True)
class RecordedProgram(Program):
    """A program with tables for the derivations of the relations in `record`, as outputs; `plain` is the one without."""

    plain: Program = field(kw_only=True, repr=False, compare=False)
    record: tuple[str, ...] = field(kw_only=True)


def with_derivations(program: Program, relations: Iterable[str]) -> RecordedProgram:
    """The program with the derivations of some relations as outputs. Raises ValueError for those that have none to record.

    >>> from whence import load
    >>> program = with_derivations(load("r: p(x) :- e(x, y). .decl e(x:number, y:number) .input e .output p"), ["p"])
    >>> program.outputs
    ('p', 'r.derivations')
    """
    record = tuple(dict.fromkeys(relations))
    refuse_unrecordable(program, compile_plan(program), record)
    changed, recordings = record_derivations(program, record)
    transfers = program.transfers
    if any(program.transfers_of("output")):
        tables = dict.fromkeys(each.relation for each in recordings.values())
        transfers += tuple(Transfer("output", name, {}, changed.relations[name].span) for name in tables)
    parts = {each.name: getattr(changed, each.name) for each in fields(Program)} | {"transfers": transfers}
    return RecordedProgram(**parts, plain=program, record=record)


def refuse_unrecordable(program: Program, plan: Plan, relations: Collection[str]) -> None:
    """Raises ValueError for a relation whose tuples do not come from firings of its rules alone."""
    for name in relations:
        if name not in program.relations:
            raise ValueError(f"there is no relation {name}; there are {', '.join(program.relations)}")
        if all(rule.is_fact for rule in program.rules_for(name)):
            raise ValueError(f"no rule derives {name}: there is nothing to record")
    for stratum in plan.strata:
        for name in set(relations) & set(stratum.relations):
            if not stratum.native:
                raise ValueError(f"derivations of {name} cannot be recorded: {stratum.why_not_native}")


def record_derivations(program: Program, relations: Collection[str]) -> tuple[Program, dict[str, Recording]]:
    """The program with tables for the rules of some relations, and where they are, by rule."""
    recorder = _Recorder(program)
    for stratum in program.strata:
        recorder.add(stratum, [name for name in stratum.relations if name in relations])
    rules = [rule for rule in program.rules if rule.name not in recorder.recordings]
    changed = replace(
        program,
        relations={**program.relations, **recorder.relations},
        rules=(*rules, *recorder.rules),
        strata=tuple(recorder.strata),
    )
    return changed, recorder.recordings


@dataclass
class _Recorder:
    program: Program
    relations: dict[str, Relation] = field(default_factory=dict)
    rules: list[Rule] = field(default_factory=list)
    strata: list[Stratum] = field(default_factory=list)
    recordings: dict[str, Recording] = field(default_factory=dict)
    shared: dict[tuple[Literal, ...], str] = field(default_factory=dict)

    def add(self, stratum: Stratum, chosen: list[str]) -> None:
        before = len(self.shared)
        for rule in self.program.rules:
            if rule.head.relation in chosen and not rule.is_fact:
                self._record(rule, is_source=not stratum.recursive)
        tables = [Stratum((name,)) for name in list(self.shared.values())[before:]]
        self.strata += [stratum, *tables] if stratum.recursive else [*tables, stratum]

    def _record(self, rule: Rule, *, is_source: bool) -> None:
        """A table for the rule; if it is to be the source of the head's tuples, in place of the rule's body."""
        named = replace(rule, body=name_wildcards(rule.body))
        bound = dict.fromkeys(name for literal in named.body for name in binds(literal))
        kinds = {part.name: part.kind for part in walk(named.body) if isinstance(part, Var)}
        variables = tuple(Var(name, kinds[name]) for name in bound)
        body = (*named.body, *_values_of(rule.head))
        table = self.shared.get(body)
        if table is None:
            # Made-up names of rules are unfit for files and tables elsewhere, and so are those of wildcards.
            table = self.shared[body] = f"{rule.name.replace('#', '.')}.derivations"
            if table in self.program.relations:
                raise ValueError(f"{table} is a relation already: give rule {rule.name} another name")
            columns = tuple(Field(_column(each.name, bound), str(each.kind), each.kind) for each in variables)
            self.relations[table] = Relation(table, columns, rule.span)
            self.rules.append(
                replace(rule, name=f"{rule.name}!fires", head=Atom(table, variables, rule.span), body=body)
            )
        self.rules.append(replace(rule, body=(Atom(table, variables, rule.span),)) if is_source else rule)
        self.recordings[rule.name] = Recording(table, variables, named)


def _values_of(head: Atom) -> Iterator[Literal]:
    """Asks for the values of a head that may have none, as `x / y` has where y is zero: the rule does not fire there."""
    for at, arg in enumerate(head.args):
        functors = [part for part in walk(arg) if isinstance(part, Apply)]
        if any(each.functor not in _ALWAYS_DEFINED or each.kind == FLOAT for each in functors):
            yield Comparison("=", Var(f"?head{at}", arg.kind), arg, head.span)


def _column(variable: str, taken: Collection[str]) -> str:
    if not variable.startswith("?"):
        return variable
    name = f"any{variable[1:]}"
    while name in taken:
        name += "_"
    return name
