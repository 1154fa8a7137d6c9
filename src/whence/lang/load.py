"""From text to a checked `Program`: the whole front end in order."""

from __future__ import annotations

import gc
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Set
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path

from whence.lang import tree
from whence.lang.bags import is_helper
from whence.lang.components import expand_components
from whence.lang.declare import Declarations, declare
from whence.lang.diagnostics import (
    BadSubsumption,
    Diagnostic,
    Diagnostics,
    EmptyRelation,
    IgnoredInOneShot,
    MissingInclude,
    NothingShown,
    ProgramError,
    Redefined,
    TooDeep,
    UnterminatedText,
    UnusedRelation,
    UnusedVariable,
)
from whence.lang.infer import Inference
from whence.lang.infer_rule import RuleInference
from whence.lang.inline import inline_relations
from whence.lang.lower import lower_rule
from whence.lang.normalize import FlatRule, normalize
from whence.lang.nullable import Nils
from whence.lang.parser import Parsed, names_in, parse
from whence.lang.places import find_places
from whence.lang.preprocess import preprocess
from whence.lang.program import Const, Program, Rule, Subsumption
from whence.lang.signatures import SIGNATURES
from whence.lang.source import Source
from whence.lang.strata import stratify
from whence.lang.table_facts import number_facts
from whence.lang.transfers import check_transfers
from whence.lang.tree import Span, walk
from whence.lang.types import Value
from whence.lang.unfold import unfold_inline
from whence.lang.uses import declare_uses

Functions = Mapping[str, Callable[..., object]]


def load(
    text: str,
    *,
    name: str = "<program>",
    dialect: str = "datalog",
    functions: Functions | None = None,
    folder: Path | None = None,
    confined: bool = False,
) -> Program:
    """The program in `text`, checked. Raises `ProgramError` with everything that is wrong with it.

    The dialect is `datalog` or `sql`. `functions` are the Python functions that `.functor` declarations refer to; `folder` is
    where includes are looked up, and if `confined` they have to be below it.

    >>> load("p(1). q(x + 1) :- p(x). .output q").relations["q"].fields[0].kind
    Primitive(name='number')
    """
    if dialect not in ("datalog", "sql"):
        raise ValueError(f"there is no dialect {dialect}: programs are datalog or sql")
    with _no_collections():
        if dialect == "sql":
            # sqlglot takes longer to import than most programs to load.
            from whence.lang.sql import translate  # noqa: PLC0415

            source = Source.of(text, name)
            problems: list[Diagnostic] = []
            translation = translate(source, functions or {})
            parsed, functions = Parsed(translation.module, translation.found), translation.functions
        else:
            source, problems = preprocess(text, name, folder, confined=confined)
            try:
                parsed = parse(source)
            except RecursionError:
                parsed = Parsed(tree.Module(()), [TooDeep(Span(0, 1))], names_in(source))
        found = Diagnostics(source, problems + _without_echoes(parsed.errors, problems))
        # An included file that cannot be read may have introduced any name.
        lost = names_in(source) if any(isinstance(each, MissingInclude) for each in problems) else parsed.lost
        try:
            return check(parsed.module, source, functions or {}, found, lost)
        except RecursionError:
            found.add(TooDeep(Span(0, 1)))
            raise ProgramError(source, tuple(found.errors)) from None


def load_file(path: Path | str, *, functions: Functions | None = None, confined: bool = False) -> Program:
    """The program in a file: SQL if its name ends in `.sql`, Datalog otherwise.

    If `confined`, it includes nothing but files below its folder.
    """
    path = Path(path)
    dialect = "sql" if path.suffix == ".sql" else "datalog"
    text = path.read_text(encoding="utf-8-sig")
    return load(text, name=str(path), dialect=dialect, functions=functions, folder=path.parent, confined=confined)


def _without_echoes(syntax: list[Diagnostic], problems: list[Diagnostic]) -> list[Diagnostic]:
    """Syntax errors, but for those where the preprocessor found something never closed."""
    unterminated = {each.span.start for each in problems if isinstance(each, UnterminatedText)}
    return [each for each in syntax if each.span.start not in unterminated]


@contextmanager
def _no_collections() -> Iterator[None]:
    """Loading makes many small objects and no garbage cycles: collecting them costs a third of the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def check(
    module: tree.Module,
    source: Source,
    functions: Functions,
    diagnostics: Diagnostics,
    lost_names: Set[str] = frozenset(),
    *,
    dropped: frozenset[tuple[str, Span]] = frozenset(),
) -> Program:
    """The checked program of a tree. All errors found so far and here are raised together."""
    found, lost, whole = diagnostics.found, set(lost_names), module
    module = unfold_inline(expand_components(module, lost, found), found)
    declarations = declare(module, functions, lost, found)
    flat = [rule for rule in normalize(module, lost, found) if (rule.name, rule.span) not in dropped]
    _check_rule_names(flat, diagnostics)
    inference = Inference(declarations, functions, found)
    inference.introduce_relations(flat, module)
    declare_uses(module, declarations, found)
    if "@" in source.text:
        find_places(flat, declarations.relations, found)
    inferred = [RuleInference(inference, rule) for rule in flat]
    inference.finish_relations()
    lowered = [lower_rule(each, found) for each in inferred]
    inference.report_untyped()
    nils = Nils(declarations.relations, inference.kinds.types(), declarations.functors, inference.undeclared, found)
    has_nil = nils.is_needed(has_nil=inference.has_nil)
    if has_nil:
        lowered = nils.settle(list(zip(lowered, flat, strict=True)))
    rules = number_facts([each for each in lowered if isinstance(each, Rule)], declarations.relations, functions, found)
    subsumptions = [each for each in lowered if isinstance(each, Subsumption)]
    _check_subsumptions(subsumptions, diagnostics)
    found += check_transfers(declarations.transfers, declarations.relations)
    errors = _Errors(diagnostics)
    _warn_unused(declarations, flat, errors, diagnostics)
    # A cycle through rules that are right is wrong whatever becomes of the others.
    strata = stratify(
        declarations.relations,
        [rule for rule in rules if not errors.touch(rule.span, declarations.relations[rule.head.relation].span)],
        [each for each in subsumptions if not errors.touch(each.span)],
        found,
    )
    diagnostics.raise_if_errors()
    inlined = inline_relations(module, declarations.relations, rules, subsumptions, declarations.transfers)
    if inlined.rules is not rules:
        inlined.rules[:] = [
            nils.widened(rule) if has_nil else rule for rule in inlined.rules if (rule.name, rule.span) not in dropped
        ]
        strata = stratify(inlined.relations, inlined.rules, inlined.subsumptions, found)
        diagnostics.raise_if_errors()
    return Program(
        source,
        inference.kinds.types(),
        inlined.relations,
        tuple(inlined.rules),
        tuple(inlined.subsumptions),
        strata,
        tuple(declarations.transfers),
        # Evaluators go by name: what has the name of a built-in functor, and is not meant, is left out.
        {name: each for name, each in functions.items() if name in declarations.functors or name not in SIGNATURES},
        tuple(diagnostics.warnings),
        whole,
        dropped,
        _written(rules) if any(relation.choices for relation in declarations.relations.values()) else (),
    )


def _written(rules: list[Rule]) -> tuple[Value, ...]:
    return tuple(dict.fromkeys(part.value for rule in rules for part in walk(rule) if isinstance(part, Const)))


def _check_rule_names(rules: list[FlatRule], diagnostics: Diagnostics) -> None:
    seen: dict[str, FlatRule] = {}
    for rule in rules:
        if rule.name in seen:
            where = [(seen[rule.name].span, "it is defined here")]
            diagnostics.add(Redefined(rule.span, what="rule", name=rule.name, related=where))
        seen.setdefault(rule.name, rule)


def _check_subsumptions(subsumptions: list[Subsumption], diagnostics: Diagnostics) -> None:
    for each in subsumptions:
        if each.dominated.relation != each.dominating.relation:
            diagnostics.add(
                BadSubsumption(
                    each.span,
                    problem=f"{each.dominated.relation} cannot be subsumed by {each.dominating.relation}",
                    advice="both sides of <= are atoms of one relation",
                )
            )


class _Errors:
    """Where the errors found so far are."""

    def __init__(self, diagnostics: Diagnostics) -> None:
        self.starts = sorted(each.span.start for each in diagnostics.found if each.severity == "error")

    def touch(self, *spans: Span) -> bool:
        starts = self.starts
        return bool(starts) and any(bisect_left(starts, start) < bisect_left(starts, end) for start, end in spans)


def _warn_unused(declarations: Declarations, rules: list[FlatRule], errors: _Errors, diagnostics: Diagnostics) -> None:
    read: set[str] = {transfer.relation for transfer in declarations.transfers if transfer.kind != "input"}
    tables = (relation.table for relation in declarations.relations.values() if relation.table is not None)
    read |= {reference.table for table in tables for reference in table.references}
    filled: set[str] = {transfer.relation for transfer in declarations.transfers if transfer.kind == "input"}
    filled |= {name for name, relation in declarations.relations.items() if relation.role}
    for span, split in groupby(rules, key=lambda rule: rule.span):  # what one rule was split into stands together
        parts = list(split)
        filled.update(rule.head.relation for rule in parts)
        if parts[0].body:
            single = _single_variables(parts, read)
            # What occurs once beside an error may be part of it.
            diagnostics.found += [] if errors.touch(span) else single
    for name, relation in declarations.relations.items():
        if declarations.is_lost(name) or is_helper(name) or (name in filled and name in read):
            continue
        if diagnostics.source.place(relation.span).file.of_library:  # a component may offer more than a program takes
            continue
        if name not in filled:
            if name in read:
                diagnostics.add(EmptyRelation(relation.span, name=name))
            else:
                diagnostics.add(UnusedRelation(relation.span, name=name))
        elif name not in read and any(transfer.kind != "input" for transfer in declarations.transfers):
            diagnostics.add(UnusedRelation(relation.span, name=name))


def ignored_in_one_shot(program: Program) -> list[Diagnostic]:
    """Warnings about what means something only where facts come and go."""
    return [
        IgnoredInOneShot(span, what=directive, relation=relation.name)
        for relation in program.relations.values()
        for directive, value, span in (
            (".window", relation.window, relation.window_span),
            (".lifetime", relation.lifetime, relation.lifetime_span),
        )
        if value is not None
    ]


def nothing_shown(program: Program) -> list[Diagnostic]:
    """A warning, if no relation is written, printed or counted."""
    if program.outputs:
        return []
    rules = [rule for rule in program.rules if not rule.is_fact] or list(program.rules)
    last = rules[-1] if rules else None
    name = last.head.relation if last is not None else next(reversed(tuple(program.relations)), None)
    if name is None:
        return [NothingShown(Span(0, 0), advice="it is empty: write facts and rules, and .output R for what they give")]
    span = last.span if last is not None else program.relations[name].span
    return [NothingShown(span, advice=f"add .output {name}, or .printsize {name} for its size alone")]


def _single_variables(rules: list[FlatRule], read: set[str]) -> list[Diagnostic]:
    """Warnings about variables that occur once in a rule, given what it was split into; `read` takes the relations read."""
    places: dict[str, set[Span]] = {}
    repeated: set[str] = set()
    for rule in rules:
        here: set[str] = set()
        for part in (*tree.walk(rule.head.args), *tree.walk(rule.body)):
            if isinstance(part, tree.Variable):
                places.setdefault(part.name, set()).add(part.span)
                (repeated if part.name in here else here).add(part.name)
            elif isinstance(part, tree.Atom):
                read.add(part.relation)
    return [
        UnusedVariable(*spans, name=name)
        for name, spans in places.items()
        if len(spans) == 1 and name not in repeated and name[0] != "_" and "#" not in name
    ]
