"""From statements to a checked confederation: names, columns, types, keys, policies, and the gate of weak acyclicity."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path

from whence.exchange.acyclic import offending_cycle
from whence.exchange.diagnostics import (
    AmbiguousRelation,
    BadPolicy,
    DefinedTwice,
    MismatchedTypes,
    NotAMapping,
    NotWeaklyAcyclic,
    UnknownName,
    WrongColumns,
)
from whence.exchange.model import (
    Acceptance,
    Charge,
    Column,
    Confederation,
    Distrust,
    Preference,
    Relation,
    SchemaMapping,
    variables_of,
)
from whence.exchange.parser import (
    AcceptText,
    ChargeText,
    DistrustText,
    MappingText,
    PeerBlock,
    PreferText,
    Statement,
    parse_confederation,
    read_files,
)
from whence.lang import tree
from whence.lang.diagnostics import Diagnostics
from whence.lang.tree import Span

_LITERALS = {"": ("number", "unsigned", "float"), "u": ("unsigned",), ".": ("float",)}


def load_confederation(files: Iterable[tuple[str, str]]) -> Confederation:
    """The confederation of some files (name and text), checked. Raises `ProgramError` with all that is wrong."""
    parsed = parse_confederation(files)
    found = Diagnostics(parsed.source, parsed.errors)
    checker = _Checker(found)
    confederation = checker.run(parsed.statements)
    found.raise_if_errors()
    return confederation


def load_confederation_file(path: Path | str) -> Confederation:
    """The confederation of a file, or of the files `*.peers` of a folder."""
    return load_confederation(read_files(Path(path)))


class _Checker:
    def __init__(self, found: Diagnostics) -> None:
        self.found = found
        self.peers: dict[str, Span] = {}
        self.keys: dict[str, str] = {}
        self.relations: dict[str, Relation] = {}
        self.mappings: dict[str, SchemaMapping] = {}
        self.distrusts: list[Distrust] = []
        self.charges: list[Charge] = []
        self.acceptances: list[Acceptance] = []
        self.preferences: list[Preference] = []

    def run(self, statements: Sequence[Statement]) -> Confederation:
        for statement in statements:
            if isinstance(statement, PeerBlock):
                self._peer(statement)
        texts = [each for each in statements if isinstance(each, MappingText)]
        for text in texts:
            self._mapping(text)
        # A cycle is judged among mappings that are right.
        if cycle := offending_cycle(self.relations, self.mappings.values()):
            steps, on_it = cycle
            span = self.mappings[on_it[0]].span
            related = [(self.mappings[name].span, f"{name} is part of it") for name in on_it[1:]]
            self.found.add(NotWeaklyAcyclic(span, cycle=steps, mappings=", ".join(on_it), related=related))
        names = {text.name for text in texts}
        for statement in statements:
            if isinstance(statement, DistrustText):
                self._distrust(statement, names)
            elif isinstance(statement, ChargeText) and self._is_peer(statement.peer, statement.span):
                self._charge(statement, names)
            elif isinstance(statement, PreferText) and self._is_peer(statement.peer, statement.span):
                for subject in statement.subjects:
                    self._known(subject, {*self.peers, *names}, "peer or mapping", statement.span)
                self.preferences.append(Preference(statement.peer, statement.subjects, statement.span))
            elif isinstance(statement, AcceptText) and self._is_peer(statement.peer, statement.span):
                self._is_peer(statement.source, statement.span)
                self.acceptances.append(Acceptance(statement.peer, statement.source, statement.span))
        return Confederation(
            self.found.source,
            tuple(self.peers),
            self.relations,
            self.mappings,
            tuple(self.distrusts),
            tuple(self.charges),
            tuple(self.acceptances),
            tuple(self.preferences),
            tuple(each for each in statements if isinstance(each, tree.FunctorDecl)),
            self.keys,
        )

    # -- names

    def _known(self, name: str, names: Iterable[str], what: str, span: Span) -> bool:
        known = sorted(names)
        if name in known:
            return True
        close = get_close_matches(name, known, 1)
        advice = (
            f"did you mean {close[0]}?" if close else f"there are {', '.join(known)}" if known else "there are none"
        )
        self.found.add(UnknownName(span, what=what, name=name, advice=advice))
        return False

    def _is_peer(self, name: str, span: Span) -> bool:
        return self._known(name, self.peers, "peer", span)

    def _resolve(self, atom: tree.Atom) -> tree.Atom | None:
        """The atom with the full name of its relation, if there is one that has so many columns."""
        name = atom.relation
        if name not in self.relations:
            choices = [full for full, each in self.relations.items() if each.name == name]
            if len(choices) > 1:
                self.found.add(AmbiguousRelation(atom.span, name=name, choices=" or ".join(choices)))
                return None
            if not choices:
                short = [*self.relations, *(each.name for each in self.relations.values())]
                self._known(name, short, "relation", atom.span)
                return None
            name = choices[0]
        relation = self.relations[name]
        if len(atom.args) != len(relation.columns):
            columns = ", ".join(f"{each.name}: {each.type}" for each in relation.columns)
            expected = f"{len(relation.columns)} column{'s' * (len(relation.columns) != 1)}"
            self.found.add(
                WrongColumns(atom.span, relation=name, expected=expected, found=len(atom.args), columns=columns)
            )
            return None
        return replace(atom, relation=name)

    # -- peers

    def _peer(self, block: PeerBlock) -> None:
        if block.name in self.peers:
            where = [(self.peers[block.name], "it is defined here")]
            self.found.add(DefinedTwice(block.span, what="peer", name=block.name, related=where))
        self.peers.setdefault(block.name, block.span)
        if block.key is not None:
            self.keys[block.name] = block.key
        for text in block.relations:
            columns = tuple(Column(name, type_) for name, type_, _ in text.columns)
            names = [each.name for each in columns]
            for at, (name, _, span) in enumerate(text.columns):
                if name in names[:at]:
                    self.found.add(DefinedTwice(span, what="column", name=name))
            key = tuple(
                names.index(name)
                for name, span in text.key or ()
                if self._known(name, names, f"column of {text.name}", span)
            )
            relation = Relation(block.name, text.name, columns, key, text.span)
            if relation.full_name in self.relations:
                where = [(self.relations[relation.full_name].span, "it is defined here")]
                self.found.add(DefinedTwice(text.span, what="relation", name=relation.full_name, related=where))
            self.relations.setdefault(relation.full_name, relation)

    # -- mappings

    def _mapping(self, text: MappingText) -> None:
        if text.name in self.mappings:
            where = [(self.mappings[text.name].span, "it is defined here")]
            self.found.add(DefinedTwice(text.span, what="mapping", name=text.name, related=where))
            return
        if text.name in self.peers:
            where = [(self.peers[text.name], "it is the name of this peer")]
            self.found.add(DefinedTwice(text.span, what="the name", name=text.name, related=where))
        before = len(self.found.found)
        atoms, conditions = self._body(text.body)
        heads = tuple(resolved for atom in text.heads if (resolved := self._resolve(atom)))
        if len(self.found.found) > before:
            return
        mapping = SchemaMapping(text.name, _name_wildcards(atoms), conditions, heads, text.exists, text.span)
        if text.both_ways:
            if conditions or text.exists:
                problem = "a mapping in both directions has atoms only, and invents nothing"
                self.found.add(NotAMapping(text.span, problem=problem, advice="write two mappings with ->"))
                return
            back = SchemaMapping(f"{text.name}_back", heads, (), mapping.atoms, (), text.span, text.name)
            mapping = replace(mapping, reverse=back.name)
            self._checked_mapping(back)
        self._checked_mapping(mapping)

    def _body(self, body: tree.Formula) -> tuple[tuple[tree.Atom, ...], tuple[tree.Formula, ...]]:
        parts = body.items if isinstance(body, tree.And) else (body,)
        atoms: list[tree.Atom] = []
        conditions: list[tree.Formula] = []
        for part in parts:
            if isinstance(part, tree.Atom):
                if (resolved := self._resolve(part)) is not None:
                    atoms.append(resolved)
            elif isinstance(part, tree.Constraint) and not any(
                isinstance(each, tree.Aggregate) for each in tree.walk(part)
            ):
                conditions.append(part)
            else:
                span = getattr(part, "span", Span(0, 1))
                advice = "a mapping's body is made of atoms and comparisons, joined by ','"
                self.found.add(NotAMapping(span, problem="this cannot stand in a mapping", advice=advice))
        return tuple(atoms), tuple(conditions)

    def _checked_mapping(self, mapping: SchemaMapping) -> None:
        before = len(self.found.found)
        self._check_terms(mapping)
        self._check_existentials(mapping)
        self._check_types(mapping)
        if len(self.found.found) == before:
            self.mappings[mapping.name] = mapping

    def _check_terms(self, mapping: SchemaMapping) -> None:
        if not mapping.atoms:
            advice = "begin it with an atom, as in G(i, n) -> B(i, n)"
            self.found.add(NotAMapping(mapping.span, problem=f"{mapping.name} reads no relation", advice=advice))
        for atom in (*mapping.atoms, *mapping.heads):
            for arg in atom.args:
                if isinstance(arg, tree.Wildcard):
                    advice = "name it, and say that it exists: exists b. B(b, n)"
                    self.found.add(NotAMapping(arg.span, problem="_ stands for no value here", advice=advice))
                elif not isinstance(arg, tree.Variable | tree.Number | tree.String):
                    advice = "give it a name in the body: x = …"
                    self.found.add(
                        NotAMapping(arg.span, problem="an atom holds variables and constants", advice=advice)
                    )

    def _check_existentials(self, mapping: SchemaMapping) -> None:
        body, used = set(mapping.variables), set(variables_of(mapping.heads))
        for name in sorted(used - body - set(mapping.exists)):
            advice = f"use it in the body, or invent a value for it: exists {name}."
            self.found.add(NotAMapping(mapping.span, problem=f"nothing gives {name} a value", advice=advice))
        for name in mapping.exists:
            if name in body:
                advice = "take it out of exists"
                self.found.add(NotAMapping(mapping.span, problem=f"{name} has a value in the body", advice=advice))
            elif name not in used:
                advice = "take it out of exists"
                self.found.add(NotAMapping(mapping.span, problem=f"{name} is not used", advice=advice))

    def _check_types(self, mapping: SchemaMapping) -> None:
        """A variable has one type in all columns. What conditions do with it, the language checks."""
        seen: dict[str, tuple[str, str]] = {}
        for atom in (*mapping.atoms, *mapping.heads):
            self._check_columns(atom, seen)

    def _check_columns(self, atom: tree.Atom, seen: dict[str, tuple[str, str]]) -> None:
        for arg, column in zip(atom.args, self.relations[atom.relation].columns, strict=True):
            where = f"{atom.relation}.{column.name}"
            if isinstance(arg, tree.Variable):
                type_, first = seen.setdefault(arg.name, (column.type, where))
                if type_ != column.type:
                    advice = "convert it in the body, with to_string(x) or to_number(x)"
                    self.found.add(
                        MismatchedTypes(
                            arg.span, what=arg.name, left=column.type, right=type_, where=first, advice=advice
                        )
                    )
            elif isinstance(arg, tree.Number | tree.String):
                fits = ("symbol",) if isinstance(arg, tree.String) else _LITERALS[arg.suffix]
                if column.type not in fits:
                    self.found.add(
                        MismatchedTypes(
                            arg.span,
                            what="the constant",
                            left=fits[0],
                            right=column.type,
                            where=f"column {where}",
                            advice=f"write a {column.type}",
                        )
                    )

    # -- policies

    def _distrust(self, text: DistrustText, mappings: set[str]) -> None:
        if not self._is_peer(text.peer, text.span):
            return
        name = text.name or f"{text.peer}#{sum(each.peer == text.peer for each in self.distrusts) + 1}"
        policy = Distrust(name, text.peer, by=text.by, source=text.source, through=text.through, span=text.span)
        for mapping in (text.by, text.through):
            if mapping is not None and not self._known(mapping, mappings, "mapping", text.span):
                return
        if text.source is not None and not self._is_peer(text.source, text.span):
            return
        if text.subject is not None:
            if not self._known(text.subject, {*self.peers, *mappings}, "peer or mapping", text.span):
                return
            is_peer = text.subject in self.peers
            policy = replace(policy, source=text.subject) if is_peer else replace(policy, through=text.subject)
        condition = self._conditions(text.condition)
        if text.atom is not None:
            atom = self._resolve(text.atom)
            if atom is None:
                return
            self._check_columns(atom, {})
            owner = self.relations[atom.relation].peer
            if owner == text.peer and not text.only_base:
                policy = replace(policy, atom=atom, condition=condition)
            elif text.by or text.source or text.through:
                problem = f"{atom.relation} is {owner}'s: {text.peer} judges where its own rows come from"
                self.found.add(BadPolicy(text.span, problem=problem, advice="leave out by, from and through"))
                return
            else:
                policy = replace(policy, used=atom, condition=condition, only_base=text.only_base)
        self._check_bound(condition, text.atom, text.span)
        self.distrusts.append(policy)

    def _charge(self, text: ChargeText, mappings: set[str]) -> None:
        condition = self._conditions(text.condition)
        self._check_bound(condition, text.atom, text.span)
        rows = None
        if text.atom is not None:
            if (rows := self._resolve(text.atom)) is None:
                return
            self._check_columns(rows, {})
        elif not self._known(text.subject or "", {*self.peers, *mappings}, "peer or mapping", text.span):
            return
        self.charges.append(Charge(text.peer, text.subject, text.cost, rows, condition, text.span))

    def _check_bound(self, condition: tuple[tree.Formula, ...], atom: tree.Atom | None, span: Span) -> None:
        if free := set(variables_of(condition)) - set(variables_of(atom or ())):
            advice = "use the variables of the atom in the condition"
            self.found.add(BadPolicy(span, problem=f"{min(free)} stands for nothing", advice=advice))

    def _conditions(self, formula: tree.Formula | None) -> tuple[tree.Formula, ...]:
        if formula is None:
            return ()
        parts = formula.items if isinstance(formula, tree.And) else (formula,)
        for part in parts:
            if any(isinstance(each, tree.Atom | tree.Aggregate) for each in tree.walk(part)):
                span = getattr(part, "span", Span(0, 1))
                advice = 'compare the values of the row: n = "x", i > 3, @f(n) = 1'
                self.found.add(BadPolicy(span, problem="a policy looks at one row only", advice=advice))
        return parts


def _name_wildcards(atoms: tuple[tree.Atom, ...]) -> tuple[tree.Atom, ...]:
    """Every `_` gets a name, so that a derivation tells which rows it used."""
    taken = set(variables_of(atoms))
    number = 0

    def named(arg: tree.Term) -> tree.Term:
        nonlocal number
        if not isinstance(arg, tree.Wildcard):
            return arg
        while (name := f"any{(number := number + 1)}") in taken:
            pass
        return tree.Variable(name, arg.span)

    return tuple(replace(atom, args=tuple(named(arg) for arg in atom.args)) for atom in atoms)


def statements_of(confederation: Confederation) -> Mapping[object, frozenset[str]]:
    """Everything that a confederation says, and which peers it is the business of."""
    found: dict[object, frozenset[str]] = {}
    for relation in confederation.relations.values():
        found[relation] = frozenset({relation.peer})
    for peer in confederation.peers:
        found["peer", peer, confederation.keys.get(peer)] = frozenset({peer})
    for mapping in confederation.mappings.values():
        found[mapping] = mapping.peers
    for peer in confederation.peers:
        for policy in confederation.policies_of(peer):
            found[policy] = frozenset({peer})
    return found
