"""Declarations: the types, relations, functors and directives of a module, resolved and checked."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass, field, replace
from difflib import get_close_matches

from whence.lang import tree
from whence.lang.diagnostics import (
    BadChoice,
    BadTypeDeclaration,
    Diagnostic,
    MisplacedLocation,
    Redefined,
    UnknownAttribute,
    UnknownRelation,
    UnknownType,
    UnregisteredFunction,
)
from whence.lang.functors import REPLACEABLE
from whence.lang.program import Relation, Transfer
from whence.lang.signatures import SIGNATURES
from whence.lang.tree import Span
from whence.lang.types import (
    BOOL,
    DATE,
    FLOAT,
    MOST_DIGITS,
    NUMBER,
    PRIMITIVES,
    RESERVED_NAMES,
    SYMBOL,
    TIMESTAMP,
    AdtKind,
    DecimalKind,
    Field,
    Kind,
    ListKind,
    Nullable,
    Primitive,
    RecordKind,
    Types,
    decimal_kind,
)

# Comparing a name with thousands of others takes a while: only the first unknown names are.
MAX_SUGGESTIONS = 20
MAX_CHAIN = 100
_STEERING = frozenset({"inline", "no_inline", "magic", "no_magic", "brie", "btree", "btree_delete", "overridable"})
_ANNOTATED: dict[str, Primitive] = {
    "int": NUMBER,
    "float": FLOAT,
    "str": SYMBOL,
    "bool": BOOL,
    **dict.fromkeys(("date", "datetime.date"), DATE),
    **dict.fromkeys(("datetime", "datetime.datetime"), TIMESTAMP),
}
_DIRECTIVE_QUALIFIERS = frozenset({"input", "output", "printsize"})

# What other languages call the primitive types.
_ELSEWHERE = {
    **dict.fromkeys(("int", "integer", "bigint", "long", "int32", "int64", "i32", "i64"), "number"),
    **dict.fromkeys(("uint", "uint32", "uint64", "u32", "u64"), "unsigned"),
    **dict.fromkeys(("double", "real", "f32", "f64"), "float"),
    **dict.fromkeys(("string", "str", "text", "varchar", "char"), "symbol"),
    **dict.fromkeys(("boolean", "bit"), "bool"),
    **dict.fromkeys(("datetime",), "timestamp"),
}


@dataclass(frozen=True, slots=True)
class Functor:
    """A registered Python function as declared with `.functor`."""

    params: tuple[Kind, ...]
    result: Kind


def decimal_of(name: str) -> DecimalKind | None:
    """The kind that `decimal(p,s)` names."""
    found = re.fullmatch(r"decimal\(([0-9]{1,2}),([0-9]{1,2})\)", name)
    if found is None or not 1 <= int(found[1]) <= MOST_DIGITS or int(found[2]) > int(found[1]):
        return None
    return decimal_kind(int(found[1]), int(found[2]))


def annotated(function: Callable[..., object]) -> Functor | None:
    """The kinds of a function annotated with int, float, str, bool, date and datetime; `| None` where it takes or gives nil."""
    signature = inspect.signature(function)
    params = [_annotation(each.annotation) for each in signature.parameters.values()]
    result = _annotation(signature.return_annotation)
    if result is None or None in params:
        return None
    return Functor(tuple(param for param in params if param), result)


def _annotation(given: object) -> Kind | None:
    text = given if isinstance(given, str) else given.__name__ if type(given) is type else str(given)
    optional = re.fullmatch(r"(?:typing\.)?Optional\[([\w.]+)\]|([\w.]+) \| None|None \| ([\w.]+)", text)
    if optional is None:
        return _ANNOTATED.get(text)
    inner = _ANNOTATED.get(next(filter(None, optional.groups())))
    return None if inner is None else Nullable(inner)


@dataclass
class Declarations:
    types: Types
    relations: dict[str, Relation] = field(default_factory=dict)
    functors: dict[str, Functor] = field(default_factory=dict)
    transfers: list[Transfer] = field(default_factory=list)
    # The branches of all algebraic data types, by name: several types may share a branch name.
    branches: dict[str, list[str]] = field(default_factory=dict)
    # Names that statements with errors may have introduced: what they would have declared is not missing.
    lost: Set[str] = frozenset()
    unknown: set[str] = field(default_factory=set)

    def is_lost(self, name: str) -> bool:
        return any(part in self.lost for part in name.split("."))

    def report_unknown(self, span: Span, name: str, found: list[Diagnostic], otherwise: str) -> None:
        """Reports a relation that nothing introduces, once."""
        if name in self.unknown or self.is_lost(name):
            return
        self.unknown.add(name)
        known = self.relations if len(self.unknown) <= MAX_SUGGESTIONS else ()
        found.append(UnknownRelation(span, name=name, advice=suggest(name, known, otherwise)))


def declare(
    module: tree.Module, functions: Mapping[str, Callable[..., object]], lost: Set[str], found: list[Diagnostic]
) -> Declarations:
    declarer = _Declarer(found)
    declarations = Declarations(declarer.types(module), lost=lost)
    for type_name, branches in declarations.types.adts.items():
        for branch in branches:
            declarations.branches.setdefault(branch, []).append(type_name)
    for statement in module.statements:
        if isinstance(statement, tree.RelationDecl):
            declarer.relation(statement, declarations)
        elif isinstance(statement, tree.FunctorDecl):
            declarer.functor(statement, declarations, functions)
    return declarations


@dataclass
class _Declarer:
    found: list[Diagnostic]
    declared: dict[str, tree.TypeDecl] = field(default_factory=dict)
    kinds: dict[str, Kind] = field(default_factory=lambda: dict(PRIMITIVES))
    aliases: dict[str, str] = field(default_factory=dict)
    endless: bool = False

    # -- types

    def types(self, module: tree.Module) -> Types:
        for statement in module.statements:
            if isinstance(statement, tree.TypeDecl):
                if statement.name in RESERVED_NAMES:
                    problem = f"{statement.name} is a built-in type"
                    self.found.append(
                        BadTypeDeclaration(statement.span, problem=problem, advice="give yours another name")
                    )
                elif statement.name in self.declared:
                    first = [(self.declared[statement.name].span, "it is defined here")]
                    self.found.append(Redefined(statement.span, what="type", name=statement.name, related=first))
                else:
                    self.declared[statement.name] = statement
                    self.kinds.pop(statement.name, None)  # a built-in type whose name may be another's
        for name, statement in self.declared.items():
            match statement.body:
                case tree.RecordOf():
                    self.kinds[name] = RecordKind(name)
                case tree.BranchesOf():
                    self.kinds[name] = AdtKind(name)
                case tree.UnionOf(members=(single,)) if not single.args:
                    self.aliases[name] = single.name
        for name in self.declared:
            self._kind(name, ())
        records = {
            name: self._fields(statement.body.fields, name)
            for name, statement in self.declared.items()
            if isinstance(statement.body, tree.RecordOf)
        }
        adts = {
            name: self._branches(statement, statement.body)
            for name, statement in self.declared.items()
            if isinstance(statement.body, tree.BranchesOf)
        }
        return Types(self.kinds, records, adts, {} if self.endless else self._members())

    def _canonical(self, name: str) -> str:
        for _ in range(len(self.aliases) + 1):
            if name not in self.aliases:
                break
            name = self.aliases[name]
        return name

    def _kind(self, name: str, active: tuple[str, ...]) -> Kind | None:
        if name in self.kinds:
            return self.kinds[name]
        statement = self.declared.get(name)
        if statement is None:
            return None
        if name in active or len(active) > MAX_CHAIN:
            problem = f"type {name} is defined by itself" if name in active else "this chain of types is too long"
            self.found.append(BadTypeDeclaration(statement.span, problem=problem, advice="break the chain"))
            self.endless = True
            self.kinds[name] = PRIMITIVES["symbol"]
            return self.kinds[name]
        body = statement.body
        assert isinstance(body, tree.SubtypeOf | tree.UnionOf)
        refs = (body.base,) if isinstance(body, tree.SubtypeOf) else body.members
        kinds = [kind for ref in refs if (kind := self.resolve(ref, (*active, name))[1]) is not None]
        for ref, kind in zip(refs, kinds, strict=False):
            if kind != kinds[0]:
                self.found.append(
                    BadTypeDeclaration(
                        ref.span,
                        problem=f"type {name} cannot hold both {kinds[0]} and {kind} values",
                        advice="the members of a union have the same base type; use an algebraic data type to mix them",
                    )
                )
        self.kinds[name] = kinds[0] if kinds else PRIMITIVES["symbol"]
        return self.kinds[name]

    def resolve(self, ref: tree.TypeRef, active: tuple[str, ...] = ()) -> tuple[str, Kind | None]:
        """The canonical name and kind of a type as written."""
        if ref.name == "list" and "list" not in self.declared:
            if len(ref.args) != 1:
                self.found.append(
                    BadTypeDeclaration(ref.span, problem="list takes one type", advice="write list<number>")
                )
                return "list<symbol>", ListKind(PRIMITIVES["symbol"])
            name, element = self.resolve(ref.args[0], active)
            return f"list<{name}>", None if element is None else ListKind(element)
        kind = None if ref.args else self._kind(ref.name, active)
        if kind is None and ref.name.endswith(")"):
            return ref.name, self._decimal(ref)
        if kind is None and ref.name.endswith("?") and len(ref.name) > 1:
            return self._nullable(ref, active)
        if kind is None:
            meant = _ELSEWHERE.get(ref.name.lower())
            if ref.name == "decimal":
                advice = f"say how many digits it has, and how many behind the point: decimal({MOST_DIGITS},2)"
                self.found.append(UnknownType(ref.span, name=ref.name, advice=advice))
                return ref.name, None
            otherwise = f"declare it with .type {ref.name} <: symbol, or use number, unsigned, float or symbol"
            if meant is not None and not ref.args:
                self.found.append(UnknownType(ref.span, name=ref.name, advice=f"did you mean {meant}?"))
                return meant, PRIMITIVES[meant]
            advice = suggest(ref.name, (*PRIMITIVES, *self.declared), otherwise)
            self.found.append(UnknownType(ref.span, name=ref.name, advice=advice))
        return self._canonical(ref.name), kind

    def _decimal(self, ref: tree.TypeRef) -> Kind | None:
        kind = decimal_of(ref.name)
        if kind is None:
            problem = f"{ref.name} is not a type of decimals"
            advice = f"write decimal(digits, digits behind the point), with at most {MOST_DIGITS} digits in all"
            self.found.append(BadTypeDeclaration(ref.span, problem=problem, advice=advice))
        return kind

    def _nullable(self, ref: tree.TypeRef, active: tuple[str, ...]) -> tuple[str, Kind | None]:
        """`T?`. A name may end in a question mark as well: it was looked up before."""
        name, kind = self.resolve(replace(ref, name=ref.name[:-1]), active)
        match kind:
            case Primitive():
                return f"{name}?", Nullable(kind)
            case AdtKind() | ListKind():
                advice = "give it a branch for what is missing" if isinstance(kind, AdtKind) else "leave it empty"
                problem = f"values of {kind} cannot be nil"
                self.found.append(BadTypeDeclaration(ref.span, problem=problem, advice=advice))
        return name, kind

    def _members(self) -> dict[str, frozenset[str]]:
        """Each type with all types whose values it includes."""
        inside: dict[str, set[str]] = {self._canonical(name): set() for name in (*PRIMITIVES, *self.declared)}
        unions = set()
        for name, statement in self.declared.items():
            if isinstance(statement.body, tree.SubtypeOf):
                inside.setdefault(self._canonical(statement.body.base.name), set()).add(self._canonical(name))
            elif isinstance(statement.body, tree.UnionOf):
                unions.add(name)
                inside[self._canonical(name)] |= {self._canonical(ref.name) for ref in statement.body.members}
        # A union has no values but those of its members.
        return {name: frozenset(_reached(name, inside) - unions) for name in inside}

    def _fields(self, attributes: tuple[tree.Attribute, ...], owner: str) -> tuple[Field, ...]:
        seen: set[str] = set()
        result = []
        for attribute in attributes:
            if attribute.name in seen:
                self.found.append(Redefined(attribute.span, what="attribute", name=f"{attribute.name} of {owner}"))
            seen.add(attribute.name)
            name, kind = self.resolve(attribute.type)
            result.append(Field(attribute.name, name, kind or PRIMITIVES["symbol"]))
        return tuple(result)

    def _branches(self, statement: tree.TypeDecl, body: tree.BranchesOf) -> dict[str, tuple[Field, ...]]:
        branches: dict[str, tuple[Field, ...]] = {}
        for branch in body.branches:
            if branch.name in branches:
                self.found.append(Redefined(branch.span, what="branch", name=f"{branch.name} of {statement.name}"))
            branches[branch.name] = self._fields(branch.fields, branch.name)
        return branches

    # -- relations and functors

    def relation(self, statement: tree.RelationDecl, declarations: Declarations) -> None:
        fields = self._fields(statement.attributes, statement.names[0])
        located = [index for index, attribute in enumerate(statement.attributes) if attribute.located]
        for index in located[1:]:
            self.found.append(
                MisplacedLocation(statement.attributes[index].span, problem="a relation has one location")
            )
        if located and "everywhere" in statement.qualifiers:
            self.found.append(
                MisplacedLocation(
                    statement.attributes[located[0]].span, problem="a relation that is everywhere has no location"
                )
            )
        columns = {each.name: index for index, each in enumerate(fields)}
        choices = []
        for keys in statement.choices:
            unknown = [key for key in keys if key not in columns]
            for key in unknown:
                self.found.append(
                    UnknownAttribute(
                        statement.span, relation=statement.names[0], name=key, attributes=", ".join(columns) or "none"
                    )
                )
            if not unknown:
                choices.append(tuple(columns[key] for key in keys))
        equivalence = "eqrel" in statement.qualifiers
        if equivalence and (len(fields) != 2 or fields[0].kind != fields[1].kind):
            self.found.append(
                BadTypeDeclaration(
                    statement.span,
                    problem=f"{statement.names[0]} cannot be an eqrel relation",
                    advice="an equivalence has two attributes, and both have the same type",
                )
            )
            equivalence = False
        if equivalence and choices:
            self.found.append(
                BadChoice(
                    statement.span, problem="an eqrel relation has no choice-domain", advice="remove one of the two"
                )
            )
        for name in statement.names:
            if name in declarations.relations:
                self.found.append(
                    Redefined(
                        statement.span,
                        what="relation",
                        name=name,
                        related=[(declarations.relations[name].span, "it is defined here")],
                    )
                )
                continue
            declarations.relations[name] = Relation(
                name,
                fields,
                statement.span,
                location=located[0] if located else None,
                everywhere="everywhere" in statement.qualifiers,
                equivalence=equivalence,
                choices=tuple(choices),
                helper=statement.helper,
                table=statement.table,
                tagged=statement.tagged,
                hidden=statement.hidden,
            )
            for qualifier in statement.qualifiers:
                if qualifier in _DIRECTIVE_QUALIFIERS:
                    declarations.transfers.append(Transfer(qualifier, name, {}, statement.span))

    def functor(
        self, statement: tree.FunctorDecl, declarations: Declarations, functions: Mapping[str, Callable[..., object]]
    ) -> None:
        if statement.name in declarations.functors or statement.name in SIGNATURES.keys() - REPLACEABLE:
            self.found.append(Redefined(statement.span, what="functor", name=statement.name))
            return
        params = tuple(self.resolve(param)[1] or PRIMITIVES["symbol"] for param in statement.params)
        result = self.resolve(statement.result)[1] or PRIMITIVES["symbol"]
        declarations.functors[statement.name] = Functor(params, result)
        if statement.name not in functions:
            self.found.append(UnregisteredFunction(statement.span, name=statement.name))


def _reached(start: str, edges: Mapping[str, Set[str]]) -> set[str]:
    reached, pending = {start}, [start]
    while pending:
        following = edges.get(pending.pop(), frozenset()) - reached
        reached |= following
        pending += following
    return reached


def suggest(name: str, known: Iterable[str], otherwise: str) -> str:
    close = get_close_matches(name, known, 1)
    return f"did you mean {close[0]}?" if close else otherwise
