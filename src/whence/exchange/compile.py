"""A confederation to an ordinary program.

For a relation R of a peer there are base relations `R.local` (what the peer put in), `R.rejected` (what it will not have),
`R.lost` and `R.chosen` (how conflicts were decided), the derived `R.trusted`, and `R` itself: what users see and other peers
get. For a mapping m there is `m.derivations`, a row for each way in which it fires, with a column for each variable of its body:

    m.derivations(v…) :- body.
    R.trusted(args)   :- m.derivations(v…), what R's peer asks of it.
    R(x…)             :- R.trusted(x…), !R.rejected(x…), !R.lost(x…).
    R(x…)             :- R.local(x…).

An invented value is a function of the variables that both sides of its mapping share. A column that may hold one has a data
type with a branch for each such function, and one for known values; all other columns are plain.

If a policy asks where derivations come from, every row has one more column, `marks`: a bit for each peer, mapping or row that
some policy distrusts and that this derivation uses. Bits add up along a path, so conditions of all peers on it count.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce

from whence.exchange.diagnostics import BadPolicy
from whence.exchange.mappings import (
    Position,
    arg_is_new,
    nullable_positions,
    original_name,
    plain_variables,
    skolem_name,
)
from whence.exchange.model import Charge, Confederation, Distrust, Relation, SchemaMapping, variables_of
from whence.lang import tree
from whence.lang.diagnostics import Diagnostics
from whence.lang.load import Functions, check
from whence.lang.program import Program
from whence.lang.rewrite import rebuild
from whence.lang.tree import Span

LOCAL, REJECTED, LOST, CHOSEN = "local", "rejected", "lost", "chosen"
TRUSTED, WITHDRAWN = "trusted", "withdrawn"
MARKS = "marks"
_MOST_MARKS = 62

Mark = tuple[str, str]  # what it is (peer, mapping, policy) and its name
Skolem = tuple[tuple[str, bool], ...]  # the type of each argument, and whether it may be an invented value itself


@dataclass(frozen=True)
class Compiled:
    """The program, and what is needed to read its tables: which columns hold nulls, and which bits mean what."""

    confederation: Confederation
    program: Program
    nullable: frozenset[Position]
    skolems: Mapping[str, Skolem]
    marks: Mapping[Mark, int]
    columns: Mapping[str, tuple[tuple[str, str, bool], ...]]  # of m.derivations: variable, type, may it be a null
    # For each head of a mapping: the policies that judge what it makes, in order, each with the table of what it accepted;
    # the last one's is the trusted relation.
    judges: Mapping[tuple[str, int], tuple[tuple[Distrust, str | None], ...]]

    @property
    def has_marks(self) -> bool:
        return bool(self.marks)


def table_of(mapping: str) -> str:
    return f"{mapping}.derivations"


def charged(at: int) -> str:
    """The relation of the base rows that a charge, by its place among all, is for."""
    return f"charges.{at}"


def known(type_: str) -> str:
    return f"Is_{type_}"


def compile_confederation(confederation: Confederation, functions: Functions | None = None) -> Compiled:
    """Raises `ProgramError` for what only the language sees, such as a comparison of a number with a symbol."""
    return _Compiler(confederation).run(functions or {})


@dataclass
class _Compiler:
    confederation: Confederation
    statements: list[tree.Statement] = field(default_factory=list)

    def run(self, functions: Functions) -> Compiled:
        source = self.confederation.source
        found = Diagnostics(source)
        self.nullable = nullable_positions(self.confederation)
        self.skolems = self._skolems()
        self.marks = self._marks(found)
        self.judges: dict[tuple[str, int], tuple[tuple[Distrust, str | None], ...]] = {}
        self.columns = {m.name: self._columns(m) for m in self.confederation.mappings.values()}
        self.statements += self.confederation.functors
        self.statements += self._types()
        for relation in self.confederation.relations.values():
            self._relation(relation)
        for mapping in self.confederation.mappings.values():
            self._mapping(mapping)
        self._withdrawals(found)
        for at, charge in enumerate(self.confederation.charges):
            self._charged(charge, at)
        module = tree.Module(tuple(self.statements))
        program = check(module, source, functions, found)
        return Compiled(self.confederation, program, self.nullable, self.skolems, self.marks, self.columns, self.judges)

    # -- types

    def _skolems(self) -> dict[str, Skolem]:
        found: dict[str, Skolem] = {}
        for mapping in self.confederation.mappings.values():
            types, plain = self._types_in(mapping), plain_variables(mapping, self.nullable)
            for name in mapping.exists:
                found[skolem_name(mapping, name)] = tuple((types[arg], arg not in plain) for arg in mapping.shared)
        return found

    def _types_in(self, mapping: SchemaMapping) -> dict[str, str]:
        relations = self.confederation.relations
        return {
            arg.name: column.type
            for atom in (*mapping.atoms, *mapping.heads)
            for arg, column in zip(atom.args, relations[atom.relation].columns, strict=True)
            if isinstance(arg, tree.Variable)
        }

    def _types(self) -> Iterator[tree.TypeDecl]:
        made: dict[str, list[tree.BranchDecl]] = {}
        for name, at in sorted(self.nullable):
            made.setdefault(self.confederation.relations[name].columns[at].type, [])
        for mapping in self.confederation.mappings.values():
            types = self._types_in(mapping)
            for name in mapping.exists:
                skolem = skolem_name(mapping, name)
                fields = tuple(
                    tree.Attribute(f"{arg}_", _type(*kind), False, mapping.span)
                    for arg, kind in zip(mapping.shared, self.skolems[skolem], strict=True)
                )
                made[types[name]].append(tree.BranchDecl(skolem, fields, mapping.span))
        for type_, branches in made.items():
            own = tree.BranchDecl(known(type_), (tree.Attribute("value", _type(type_)),))
            yield tree.TypeDecl(_nullable_type(type_), tree.BranchesOf((own, *branches)))

    def _declare(self, name: str, columns: Iterable[tuple[str, str, bool]], span: Span, *, marked: bool) -> None:
        attributes = [tree.Attribute(column, _type(type_, null), False, span) for column, type_, null in columns]
        if marked and self.marks:
            attributes.append(tree.Attribute(MARKS, _type("number"), False, span))
        self.statements.append(tree.RelationDecl((name,), tuple(attributes), (), (), span))

    def _rule(self, head: tree.Atom, body: Sequence[tree.Formula], span: Span, name: str | None = None) -> None:
        formula = body[0] if len(body) == 1 else tree.And(tuple(body), span)
        self.statements.append(tree.Rule((head,), formula, name, None, span))

    # -- marks

    def _marks(self, found: Diagnostics) -> dict[Mark, int]:
        marks: dict[Mark, int] = {}
        for policy in self.confederation.distrusts:
            for mark in marks_of(policy):
                marks.setdefault(mark, 1 << len(marks))
        if len(marks) > _MOST_MARKS:
            span = self.confederation.distrusts[-1].span
            problem = f"policies tell {len(marks)} peers, mappings and rows apart"
            found.add(BadPolicy(span, problem=problem, advice=f"no more than {_MOST_MARKS} are kept track of"))
        return marks

    def _marked(self, args: Sequence[tree.Term], marks: tree.Term) -> tuple[tree.Term, ...]:
        return (*args, marks) if self.marks else tuple(args)

    def _bit(self, kind: str, name: str) -> tree.Number:
        return tree.Number(self.marks.get((kind, name), 0))

    # -- relations

    def _relation(self, relation: Relation) -> None:
        name, span = relation.full_name, relation.span
        columns = self._columns_of(relation)
        row = [tree.Variable(f"x{at}", span) for at in range(len(columns))]
        for part in (LOCAL, REJECTED, LOST, CHOSEN):
            self._declare(f"{name}.{part}", columns, span, marked=False)
            self.statements.append(tree.Directive("input", (f"{name}.{part}",), (), span, (span,)))
        self._declare(f"{name}.{TRUSTED}", columns, span, marked=True)
        self._declare(name, columns, span, marked=True)
        self.statements.append(tree.Directive("output", (name,), (), span, (span,)))
        used = [each for each in self.confederation.distrusts if each.used and each.used.relation == name]
        marks = tree.Variable(MARKS, span)
        refused = [tree.Not(tree.Atom(f"{name}.{part}", tuple(row), None, span), span) for part in (REJECTED, LOST)]
        kept: list[tree.Formula] = []
        if name in self._withdrawable():
            self._declare(f"{name}.{WITHDRAWN}", columns, span, marked=False)
            kept = [tree.Not(tree.Atom(f"{name}.{WITHDRAWN}", tuple(row), None, span), span)]
        bound = [tree.Constraint("=", marks, self._bit("peer", relation.peer), span)] if self.marks else []
        local = [tree.Atom(f"{name}.{LOCAL}", tuple(row), None, span), *bound, *kept]
        trusted = tree.Atom(f"{name}.{TRUSTED}", self._marked(row, marks), None, span)
        target = self._chain(name, columns, row, [each for each in used if not each.only_base], span)
        base = self._chain(target, columns, row, [each for each in used if each.only_base], span)
        self._rule(tree.Atom(base, self._marked(row, marks), None, span), local, span, f"{name}.own")
        self._rule(
            tree.Atom(target, self._marked(row, marks), None, span), [trusted, *refused, *kept], span, f"{name}.got"
        )

    def _chain(
        self,
        target: str,
        columns: Sequence[tuple[str, str, bool]],
        row: Sequence[tree.Variable],
        policies: Sequence[Distrust],
        span: Span,
    ) -> str:
        """Relations before `target` that mark the rows each policy distrusts. Gives the one where rows go in."""
        for policy in reversed(policies):
            before = f"{target}.before"
            self._declare(before, columns, span, marked=True)
            marks = tree.Variable(MARKS, span)
            source = tree.Atom(before, self._marked(row, marks), None, span)
            terms = [_Cell(arg, type_, null) for arg, (_, type_, null) in zip(row, columns, strict=True)]
            match = self._match(policy.condition, policy.used, terms)
            assert match is not None
            bit = self._bit("policy", policy.name)
            with_bit = tree.Atom(target, self._marked(row, tree.Call("bor", (marks, bit))), None, span)
            self._rule(with_bit, [source, *match.conditions], policy.span)
            if match.conditions:
                without = tree.Atom(target, self._marked(row, marks), None, span)
                self._rule(without, [source, match.refutation(span)], policy.span)
            target = before
        return target

    # -- mappings

    def _columns(self, mapping: SchemaMapping) -> tuple[tuple[str, str, bool], ...]:
        types, plain = self._types_in(mapping), plain_variables(mapping, self.nullable)
        return tuple((name, types[name], name not in plain) for name in mapping.variables if name in types)

    def _mapping(self, mapping: SchemaMapping) -> None:
        span, columns = mapping.span, self.columns[mapping.name]
        self._declare(table_of(mapping.name), columns, span, marked=True)
        plain = plain_variables(mapping, self.nullable)
        body: list[tree.Formula] = []
        parts: list[tree.Term] = []
        for at, atom in enumerate(mapping.atoms):
            parts.append(tree.Variable(f"{MARKS}{at}", span))
            body.append(replace(atom, args=self._marked(self._terms(mapping, atom, plain), parts[-1])))
        body += mapping.conditions
        marks = tree.Variable(MARKS, span)
        bit = self._bit("mapping", original_name(mapping))
        total = reduce(lambda one, other: tree.Call("bor", (one, other)), [*parts, *([bit] if bit.value else [])])
        if self.marks:
            body.append(tree.Constraint("=", marks, total, span))
        variables = [tree.Variable(name, span) for name, _, _ in columns]
        table = tree.Atom(table_of(mapping.name), self._marked(variables, marks), None, span)
        self._rule(table, body, span, mapping.name)
        for number, head in enumerate(mapping.heads, 1):
            self._head(mapping, head, number, table, plain)

    def _head(
        self, mapping: SchemaMapping, head: tree.Atom, number: int, table: tree.Atom, plain: frozenset[str]
    ) -> None:
        """The rule that trusts what the mapping makes: one step for each policy, so that their alternatives do not multiply."""
        relation = self.confederation.relations[head.relation]
        cells = [
            _Cell(arg, column.type, isinstance(arg, tree.Variable) and arg.name not in plain, arg_is_new(arg, mapping))
            for arg, column in zip(head.args, relation.columns, strict=True)
        ]
        body: list[tree.Formula] = [table]
        judges: list[tuple[Distrust, str | None]] = []
        for policy in self.confederation.distrusts:
            if not concerns(policy, relation, mapping):
                continue
            match = self._match(policy.condition, policy.atom, cells)
            if match is None:
                continue
            bits = sum(self.marks[mark] for mark in marks_of(policy))
            if not match.conditions and not bits:
                self.judges[mapping.name, number] = ((policy, None),)
                return
            if judges:
                name = f"{mapping.name}.{number}.accepted{len(judges)}"
                judges[-1] = (judges[-1][0], name)
                self._declare(name, self.columns[mapping.name], policy.span, marked=True)
                accepted = replace(table, relation=name)
                self._rule(accepted, body, policy.span)
                body = [accepted]
            body.append(match.refutation(policy.span, bits))
            judges.append((policy, None))
        self.judges[mapping.name, number] = tuple(judges)
        args = self._marked(self._terms(mapping, head, plain), tree.Variable(MARKS, mapping.span))
        trusted = replace(head, relation=f"{head.relation}.{TRUSTED}", args=args)
        self._rule(trusted, body, mapping.span, f"{mapping.name}.{number}")

    def _terms(self, mapping: SchemaMapping, atom: tree.Atom, plain: frozenset[str]) -> list[tree.Term]:
        """The arguments of an atom of a mapping, as its columns hold them."""
        relation = self.confederation.relations[atom.relation]
        terms: list[tree.Term] = []
        for at, (arg, column) in enumerate(zip(atom.args, relation.columns, strict=True)):
            if isinstance(arg, tree.Variable) and arg.name in mapping.exists:
                shared = tuple(tree.Variable(name, arg.span) for name in mapping.shared)
                terms.append(tree.Branch(skolem_name(mapping, arg.name), shared, arg.span))
            elif (atom.relation, at) in self.nullable and not (
                isinstance(arg, tree.Variable) and arg.name not in plain
            ):
                terms.append(tree.Branch(known(column.type), (arg,), arg.span))
            else:
                terms.append(arg)
        return terms

    # -- policies

    def _match(
        self, condition: Sequence[tree.Formula], pattern: tree.Atom | None, cells: Sequence[_Cell]
    ) -> _Match | None:
        """What has to hold of a row for the policy to speak of it; None if it never does: invented values are nothing to it."""
        match = _Match()
        if pattern is None:
            return match
        asked = set(variables_of(condition))
        names = [arg.name for arg in pattern.args if isinstance(arg, tree.Variable)]
        bound: dict[str, tree.Term] = {}
        for arg, cell in zip(pattern.args, cells, strict=True):
            if isinstance(arg, tree.Wildcard) or (
                isinstance(arg, tree.Variable) and arg.name not in asked and names.count(arg.name) == 1
            ):
                continue
            if cell.is_new:
                return None
            value = cell.term
            if cell.nullable:
                assert isinstance(cell.term, tree.Variable)
                value = tree.Variable(f"{cell.term.name}_known", arg.span)
                match.known.append(tree.Constraint("=", cell.term, tree.Branch(known(cell.type), (value,)), arg.span))
                match.others += [
                    tree.Constraint("=", cell.term, tree.Branch(name, tuple(tree.Wildcard() for _ in args)), arg.span)
                    for name, args in self._skolems_of(cell.type)
                ]
            if isinstance(arg, tree.Variable) and arg.name not in bound:
                bound[arg.name] = value
            else:
                wanted = bound[arg.name] if isinstance(arg, tree.Variable) else arg
                match.tests.append(tree.Constraint("=", value, wanted, arg.span))
        match.tests += [_substitute(each, bound) for each in condition]
        return match

    def _charged(self, charge: Charge, at: int) -> None:
        """The base rows that a charge is for."""
        if charge.rows is None:
            return
        relation, span = self.confederation.relations[charge.rows.relation], charge.span
        columns = self._columns_of(relation)
        row = [tree.Variable(f"x{at}", span) for at in range(len(columns))]
        cells = [_Cell(arg, type_, null) for arg, (_, type_, null) in zip(row, columns, strict=True)]
        match = self._match(charge.condition, charge.rows, cells)
        assert match is not None
        self._declare(charged(at), columns, span, marked=False)
        body = [tree.Atom(f"{relation.full_name}.{LOCAL}", tuple(row), None, span), *match.conditions]
        self._rule(tree.Atom(charged(at), tuple(row), None, span), body, span)

    def _columns_of(self, relation: Relation) -> list[tuple[str, str, bool]]:
        name = relation.full_name
        return [(column.name, column.type, (name, at) in self.nullable) for at, column in enumerate(relation.columns)]

    def _skolems_of(self, type_: str) -> Iterator[tuple[str, Skolem]]:
        for mapping in self.confederation.mappings.values():
            types = self._types_in(mapping)
            for name in mapping.exists:
                if types[name] == type_:
                    yield skolem_name(mapping, name), self.skolems[skolem_name(mapping, name)]

    # -- deletions that travel back

    def _invertible(self) -> Iterator[tuple[SchemaMapping, tree.Atom, tree.Atom]]:
        """Mappings of one atom to one atom in both directions, whose peers let deletions travel back."""
        accepted = {(each.peer, each.source) for each in self.confederation.acceptances}
        for mapping in self.confederation.mappings.values():
            if mapping.reverse and len(mapping.atoms) == 1 and len(mapping.heads) == 1:
                source, target = mapping.atoms[0], mapping.heads[0]
                relations = self.confederation.relations
                pair = (relations[source.relation].peer, relations[target.relation].peer)
                if pair in accepted and set(variables_of(source)) <= set(variables_of(target)):
                    yield mapping, source, target

    def _withdrawable(self) -> set[str]:
        return {source.relation for _, source, _ in self._invertible()}

    def _withdrawals(self, found: Diagnostics) -> None:
        withdrawable = self._withdrawable()
        met: set[tuple[str, str]] = set()
        for mapping, source, target in self._invertible():
            plain = plain_variables(mapping, self.nullable)
            head = replace(
                source, relation=f"{source.relation}.{WITHDRAWN}", args=tuple(self._terms(mapping, source, plain))
            )
            args = tuple(self._terms(mapping, target, plain))
            parts = [REJECTED, *([WITHDRAWN] if target.relation in withdrawable else [])]
            for part in parts:
                body = [replace(target, relation=f"{target.relation}.{part}", args=args)]
                self._rule(head, body, mapping.span)
            relations = self.confederation.relations
            met.add((relations[source.relation].peer, relations[target.relation].peer))
        for each in self.confederation.acceptances:
            if (each.peer, each.source) not in met:
                problem = f"no deletion of {each.source} can travel back to {each.peer}"
                advice = f"it takes a mapping in both directions, of one relation each: {each.peer}.R(x) <-> {each.source}.S(x)"
                found.add(BadPolicy(each.span, problem=problem, advice=advice))


@dataclass(frozen=True, slots=True)
class _Cell:
    """An argument that a policy may look at."""

    term: tree.Term
    type: str
    nullable: bool
    is_new: bool = False


@dataclass
class _Match:
    known: list[tree.Formula] = field(default_factory=list)
    others: list[tree.Formula] = field(default_factory=list)
    tests: list[tree.Formula] = field(default_factory=list)

    @property
    def conditions(self) -> list[tree.Formula]:
        return [*self.known, *self.tests]

    def refutation(self, span: Span, bits: int = 0) -> tree.Formula:
        """That the row is not one of those, or the derivation does not use everything that has these bits."""
        alternatives: list[tree.Formula] = [*self.others]
        for test in self.tests:
            negated = tree.Not(test, span)
            alternatives.append(tree.And((*self.known, negated), span) if self.known else negated)
        if bits:
            used = tree.Call("band", (tree.Variable(MARKS, span), tree.Number(bits)))
            alternatives.append(tree.Constraint("!=", used, tree.Number(bits), span))
        return alternatives[0] if len(alternatives) == 1 else tree.Or(tuple(alternatives), span)


def marks_of(policy: Distrust) -> list[Mark]:
    """What a derivation has to use for the policy to distrust it."""
    found = [("peer", policy.source), ("mapping", policy.through), ("policy", policy.name if policy.used else None)]
    return [(kind, name) for kind, name in found if name is not None]


def concerns(policy: Distrust, relation: Relation, mapping: SchemaMapping) -> bool:
    return (
        policy.peer == relation.peer
        and (policy.atom is None or policy.atom.relation == relation.full_name)
        and (policy.by is None or policy.by == original_name(mapping))
    )


def _nullable_type(type_: str) -> str:
    return f"{type_}_or_null"


def _type(type_: str, nullable: bool = False) -> tree.TypeRef:
    return tree.TypeRef(_nullable_type(type_) if nullable else type_)


def _substitute(formula: tree.Formula, values: Mapping[str, tree.Term]) -> tree.Formula:
    """The formula with terms for its variables."""
    return rebuild(formula, lambda node: values.get(node.name, node) if isinstance(node, tree.Variable) else node)
