"""Aggregates out of rules: each becomes a relation of its own, which rules then join with.

`h(x, n) :- a(x), n = count : { b(x, y), y > 0 }.` becomes

    context(x) :- a(x).
    rows(x, y) :- context(x), b(x, y), y > 0.
    groups(x, n): for each x of context, n = the count of rows with that x.
    h(x, n) :- groups(x, n).

The context tells for which values of the outer variables the aggregate is asked for, so that an empty group has a count of
zero; where nothing is bound outside there is one group and no context. As much of this is left out as can be:

- an atom that holds whenever the group has rows (`path(x, y, _)` beside `min d : { path(x, y, d) }`) goes, and with it the
  context: groups are then those that have rows;
- what stands before the aggregate stays in the rule only if it tells more than which groups are asked for;
- the context goes also inside a recursion if an empty group has no value: it might depend on the recursion itself;
- `rows` is the aggregated relation itself where the aggregate runs over one atom;
- `groups` is the rule's head itself where nothing is left to join with, as above.

In `sp(x, y, m) :- path(x, y, _), m = min d : { path(x, y, d) }.` all of it goes: sp holds the groups of path.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

from whence.lang.order import names_met, order_body
from whence.lang.program import Aggregation, Anything, Atom, Literal, Program, Relation, Rule, Stratum, Term, Var
from whence.lang.tree import Span, walk
from whence.lang.types import Field, Kind


@dataclass(frozen=True, slots=True)
class AggregateSpec:
    """How a relation of groups, `output`, follows from the `rows` they are made of and the `context` they are asked for in.

    Keys are in `key_columns` of the rows and `output_keys` of the output; the context holds nothing else.
    """

    op: str
    rows: str
    key_columns: tuple[int, ...]
    value_column: int | None
    context: str | None
    output: str
    output_keys: tuple[int, ...]
    output_value: int
    value_kind: Kind | None
    kind: Kind
    rule: str
    span: Span
    recursive: bool

    @property
    def has_empty_groups(self) -> bool:
        """Whether a group without rows has a value."""
        return keeps_empty_groups(self.op) and (self.context is not None or not self.key_columns)

    @property
    def sources(self) -> tuple[str, ...]:
        return (self.rows,) if self.context is None else (self.rows, self.context)

    @property
    def is_single(self) -> bool:
        """Whether there is one group, which is there from the start."""
        return not self.key_columns and self.context is None


def extract_aggregates(program: Program, relations: frozenset[str]) -> tuple[Program, Mapping[str, AggregateSpec]]:
    """The program with the aggregates in the rules of some relations extracted, and what the new relations are."""
    extraction = _Extraction(program)
    for stratum in program.strata:
        inside = extraction.begin(stratum)
        for name in stratum.relations:
            for rule in program.rules_for(name):
                extraction.rules += extraction.extract(rule) if name in relations else [rule]
        extraction.strata.append(replace(stratum, relations=(*stratum.relations, *inside[len(stratum.relations) :])))
    result = replace(
        program, relations=extraction.relations, rules=tuple(extraction.rules), strata=tuple(extraction.strata)
    )
    return result, extraction.specs


def keeps_empty_groups(op: str) -> bool:
    return op in ("count", "sum")


def is_extractable(rule: Rule, members: frozenset[str]) -> bool:
    """Whether what is asked for inside a recursion can be extracted without asking too early.

    A count asked for by the recursion itself would see its rows only after it was asked for.
    """
    return all(
        _reads(literal, members) or _context_can_go(literal) or not _reads(rule.body, members)
        for literal in rule.body
        if isinstance(literal, Aggregation)
    )


def _reads(part: object, relations: frozenset[str]) -> bool:
    return any(isinstance(each, Atom) and each.relation in relations for each in walk(part))


def _context_can_go(literal: Aggregation) -> bool:
    """Whether groups can be made of all rows there are: each body binds the keys, and an empty group has no value."""
    if keeps_empty_groups(literal.op):
        return False
    return all(_is_safe(body, literal) for body in literal.bodies)


def _is_safe(body: tuple[Literal, ...], literal: Aggregation) -> bool:
    ordered, known = order_body(body, set())
    return len(ordered) == len(body) and known >= set(literal.outer)


class _Extraction:
    def __init__(self, program: Program) -> None:
        self.program = program
        self.relations: dict[str, Relation] = dict(program.relations)
        self.rules: list[Rule] = []
        self.strata: list[Stratum] = []
        self.specs: dict[str, AggregateSpec] = {}
        self.base = frozenset(program.base_relations)
        self.recursive = False
        self.inside: list[str] = []
        self.counts: Counter[str] = Counter()

    def begin(self, stratum: Stratum) -> list[str]:
        """The relations of the stratum, to which those are added that depend on them."""
        self.recursive = stratum.recursive
        self.inside = list(stratum.relations)
        return self.inside

    def extract(self, rule: Rule) -> list[Rule]:
        """The rule without aggregates; what they become is added before it."""
        for at, literal in enumerate(rule.body):
            if isinstance(literal, Aggregation):
                rest = (*rule.body[:at], *rule.body[at + 1 :])
                without = tuple(each for each in rest if not _is_implied(each, rest, rule, literal))
                has_context = bool(literal.outer) and without == rest
                if has_context and self.recursive and _context_can_go(literal):
                    has_context = False
                if has_context and _is_only_asked_for(rule, at, literal):
                    without = rest[at:]
                groups = self._groups(rule, at, literal, has_context=has_context, alone=not without)
                if groups.relation == rule.head.relation:
                    return []
                kept = tuple(each for each in rule.body if each is literal or any(each is other for other in without))
                body = tuple(groups if each is literal else each for each in kept)
                return self.extract(replace(rule, body=body))
        return [rule]

    def _groups(self, rule: Rule, at: int, literal: Aggregation, *, has_context: bool, alone: bool) -> Atom:
        # Numbered by rule: the names of one rule's relations do not depend on other rules.
        name = f"{rule.name}!{self.counts[rule.name]}"
        self.counts[rule.name] += 1
        kinds = {part.name: part.kind for part in walk((rule.body, rule.head)) if isinstance(part, Var)}
        outer = tuple(Var(each, kinds[each]) for each in literal.outer)
        context = None
        if has_context:
            context = Atom(f"{name}:context", outer, literal.span)
            self._add(context, [Rule(f"{context.relation}#1", context, rule.body[:at], rule.span)])
        rows = None if context else _only_atom(literal)
        if rows is None:
            rows = self._rows(name, rule, literal, outer, context)
        columns = {arg.name: column for column, arg in enumerate(rows.args) if isinstance(arg, Var)}
        if alone and self._is_all_of(rule, literal, outer):
            groups = rule.head
            places = {arg.name: column for column, arg in enumerate(groups.args) if isinstance(arg, Var)}
            output_keys = tuple(places[var.name] for var in outer)
            output_value = places[_name_of(literal.target)]
        else:
            groups = Atom(f"{name}:groups", (*outer, literal.target), literal.span)
            self._add(groups, [], depends_on=[rows.relation, *([context.relation] if context else [])])
            output_keys, output_value = tuple(range(len(outer))), len(outer)  # the target may be one of the keys, too
        keys = tuple(columns[var.name] for var in outer)
        self.specs[groups.relation] = AggregateSpec(
            literal.op,
            rows.relation,
            keys,
            None if literal.value is None else _value_column(rows, literal.value),
            None if context is None else context.relation,
            groups.relation,
            output_keys,
            output_value,
            None if literal.value is None else literal.value.kind,
            literal.target.kind,
            rule.name,
            rule.span,
            self.recursive
            and (rows.relation in self.inside or (context is not None and context.relation in self.inside)),
        )
        return groups

    def _rows(self, name: str, rule: Rule, literal: Aggregation, outer: tuple[Var, ...], context: Atom | None) -> Atom:
        inner: dict[str, Kind] = {part.name: part.kind for part in walk(literal.bodies) if isinstance(part, Var)}
        # The least and the greatest do not ask how often a value is there.
        local = tuple(Var(each, inner[each]) for each in literal.locals if literal.op not in ("min", "max"))
        value: tuple[Term, ...] = () if literal.value is None else (literal.value,)
        rows = Atom(f"{name}:rows", (*outer, *local, *value), literal.span)
        before = () if context is None else (context,)
        self._add(
            rows,
            [
                Rule(f"{rows.relation}#{number}", rows, (*before, *body), rule.span)
                for number, body in enumerate(literal.bodies, 1)
            ],
        )
        return rows

    def _is_all_of(self, rule: Rule, literal: Aggregation, outer: tuple[Var, ...]) -> bool:
        """Whether the rule's head holds just the groups, and no other rows."""
        relation, target = rule.head.relation, literal.target
        wanted = sorted([var.name for var in outer] + [target.name if isinstance(target, Var) else ""])
        names = sorted(arg.name if isinstance(arg, Var) else "" for arg in rule.head.args)
        return (
            wanted == names
            and len(set(names)) == len(names)
            and "" not in names
            and relation not in self.base
            and sum(1 for _ in self.program.rules_for(relation)) == 1
        )

    def _add(self, head: Atom, rules: list[Rule], depends_on: list[str] | None = None) -> None:
        """A new relation: in a stratum of its own, or in the current one if it depends on it."""
        fields = tuple(Field(f"c{at}", str(arg.kind), arg.kind) for at, arg in enumerate(head.args))
        self.relations[head.relation] = Relation(head.relation, fields, head.span)
        extracted = [each for rule in rules for each in self.extract(rule)]
        self.rules += extracted
        read = {part.relation for rule in extracted for part in walk(rule.body) if isinstance(part, Atom)}
        if (read | set(depends_on or ())) & set(self.inside):
            self.inside.append(head.relation)
        else:
            self.strata.append(Stratum((head.relation,)))


def _is_implied(each: Literal, body: tuple[Literal, ...], rule: Rule, literal: Aggregation) -> bool:
    """Whether a literal beside an aggregate holds whenever the aggregate has a value (for a count or sum: has rows, which is
    also the other way round)."""
    if not isinstance(each, Atom) or not literal.outer:
        return False
    if not all(_is_safe(alternative, literal) for alternative in literal.bodies):
        return False  # the aggregate needs values from outside
    elsewhere = [name for other in body if other is not each for name in names_met(other)]
    elsewhere += [part.name for part in walk((rule.head, literal.target)) if isinstance(part, Var)]
    asked = tuple(
        None if isinstance(arg, Anything) or _is_lonely(arg, each, elsewhere, literal) else arg for arg in each.args
    )
    if not all(arg is None or (isinstance(arg, Var) and arg.name in literal.outer) for arg in asked):
        return False
    if keeps_empty_groups(literal.op):
        only = _only_atom(literal)
        if only is None or only.relation != each.relation:
            return False
        return all(
            arg == mine if isinstance(arg, Var) and arg.name in literal.outer else mine is None
            for arg, mine in zip(only.args, asked, strict=True)
        )
    return all(
        any(
            isinstance(inner, Atom)
            and inner.relation == each.relation
            and all(mine is None or mine == arg for mine, arg in zip(asked, inner.args, strict=True))
            for inner in alternative
        )
        for alternative in literal.bodies
    )


def _is_only_asked_for(rule: Rule, at: int, literal: Aggregation) -> bool:
    """Whether what stands before an aggregate tells nothing but which groups are asked for, which the context tells too."""
    before = {name for each in rule.body[:at] for name in names_met(each)}
    after = {part.name for part in walk((rule.body[at + 1 :], rule.head, literal.target)) if isinstance(part, Var)}
    return before & after <= set(literal.outer)


def _is_lonely(arg: Term, atom: Atom, elsewhere: list[str], literal: Aggregation) -> bool:
    """Whether a variable occurs nowhere else, so that it is as good as a wildcard."""
    if not isinstance(arg, Var) or arg.name in elsewhere or arg.name in literal.outer:
        return False
    return sum(isinstance(part, Var) and part.name == arg.name for part in atom.args) == 1


def _only_atom(literal: Aggregation) -> Atom | None:
    """The atom that the aggregate runs over, if it is all there is and its rows are what is aggregated."""
    if len(literal.bodies) != 1 or len(literal.bodies[0]) != 1:
        return None
    (atom,) = literal.bodies[0]
    if not isinstance(atom, Atom) or not (literal.value is None or isinstance(literal.value, Var)):
        return None
    names = [arg.name for arg in atom.args if isinstance(arg, Var)]
    plain = all(isinstance(arg, Var | Anything) for arg in atom.args) and len(set(names)) == len(names)
    wanted = {*literal.outer, *([literal.value.name] if isinstance(literal.value, Var) else [])}
    if not plain or not wanted <= set(names):
        return None
    # Wildcards would count rows that differ in nothing else once for each; for the least and the greatest it is the same.
    if len(names) < len(atom.args) and literal.op not in ("min", "max"):
        return None
    return atom if literal.op in ("min", "max") or set(names) <= {*literal.outer, *literal.locals} else None


def _value_column(rows: Atom, value: Term) -> int:
    return max(column for column, arg in enumerate(rows.args) if arg == value)


def _name_of(term: Term) -> str:
    assert isinstance(term, Var)
    return term.name
