"""`whence trees`: queries of annotated trees, XML and JSON, and their answers."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from whence.cli.evaluate import reported_errors, shown_warnings
from whence.cli.mistakes import no_file, unknown
from whence.cli.terminal import err, out, show
from whence.io import write_relation
from whence.pipeline.extras import extra
from whence.semiring import SEMIRINGS, Access, Boolean, PosBool, Semiring
from whence.trees.check import load_query, load_query_file
from whence.trees.clearance import view_for
from whence.trees.compile import compile_query
from whence.trees.core import Query
from whence.trees.documents import annotate, read_document, read_policy
from whence.trees.evaluate import evaluate_query
from whence.trees.maintain import Change, Maintained
from whence.trees.render import Show, annotations_of, one_line, text_lines, to_json, xml_lines
from whence.trees.shred import base_rows, evaluate_shredded
from whence.trees.values import Forest, KSet
from whence.trees.worlds import Likelihood, coin_flips, variables_of
from whence.trees.worlds import worlds as worlds_of

trees = typer.Typer(
    help="Query annotated trees, XML and JSON: by clearance, with provenance, incomplete or changing.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)


class Engine(StrEnum):
    RULES = "rules"
    RECURSION = "recursion"
    SPARK = "spark"


class Format(StrEnum):
    TEXT = "text"
    XML = "xml"
    JSON = "json"


def _known(name: str | None) -> str | None:
    if name is not None and name not in SEMIRINGS:
        raise unknown("semiring", name, SEMIRINGS)
    return name


def _level(name: str | None) -> str | None:
    levels = Access().levels[:-1]
    if name is not None and name not in levels:
        raise unknown("clearance", name, levels)
    return name


QueryArgument = Annotated[
    str, typer.Argument(metavar="QUERY", help="A file with a query, or the query itself: '$d//name'.")
]
DocumentsArgument = Annotated[
    list[str], typer.Argument(metavar="NAME=FILE…", help="XML or JSON (.json), by the variable that stands for it.")
]
SemiringOption = Annotated[
    str | None,
    typer.Option(metavar="NAME", help=f"What annotations are: {', '.join(SEMIRINGS)}.", callback=_known),
]
AnnotateOption = Annotated[
    list[str] | None,
    typer.Option(
        "--annotate",
        metavar="[NAME=]FILE",
        help="Lines `PATH ANNOTATION`: annotate the nodes that a path leads to, as in `//name secret`.",
    ),
]
ChancesOption = Annotated[
    list[str] | None,
    typer.Option("-p", "--probability", metavar="VARIABLE=P", help="How likely a variable is true. May be repeated."),
]
FormatOption = Annotated[Format, typer.Option("--format", help="How trees are written.")]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="Do not say what order is lost.")]


@trees.command("query")
def query_trees(
    query: QueryArgument,
    documents: DocumentsArgument,
    *,
    semiring: SemiringOption = None,
    policies: AnnotateOption = None,
    tokens: Annotated[bool, typer.Option("--tokens", help="Nodes without an annotation stand for themselves.")] = False,
    reader: Annotated[
        str | None,
        typer.Option("--as", metavar="CLEARANCE", help="Show what a reader with this clearance sees.", callback=_level),
    ] = None,
    chances: ChancesOption = None,
    engine: Annotated[
        Engine, typer.Option(help="Rules on the engine, recursion over trees, or rules on Spark.")
    ] = Engine.RULES,
    form: FormatOption = Format.TEXT,
    quiet: QuietOption = False,
) -> None:
    """Evaluate a query of trees and print its answer with annotations."""
    implied = {"access": reader, "posbool": chances}
    algebra = SEMIRINGS[_implied(semiring, {name: bool(given) for name, given in implied.items()})]
    with reported_errors(), shown_warnings(quiet=quiet):
        loaded = _load(query, algebra, documents)
        given = _read(documents, policies, algebra, tokens=tokens, quiet=quiet)
        latest = {name: versions[-1][1] for name, versions in given.items()}
        answer = _evaluator(engine)(loaded, latest, algebra)
        if reader is not None:
            assert isinstance(algebra, Access)
            _print(view_for(answer, reader, algebra), annotations_of(Boolean()), form)
        elif chances:
            _print(answer, Likelihood(answer, _odds(chances)).of_node, form)
        else:
            _print(answer, annotations_of(algebra), form)


@trees.command("worlds")
def list_worlds(
    query: QueryArgument,
    documents: DocumentsArgument,
    *,
    chances: ChancesOption = None,
    form: FormatOption = Format.TEXT,
    quiet: QuietOption = False,
) -> None:
    """List what the answer may be if the variables that annotate the documents may be true or false."""
    algebra = PosBool()
    with reported_errors(), shown_warnings(quiet=quiet):
        loaded = _load(query, algebra, documents)
        given = {name: each[-1][1] for name, each in _read(documents, None, algebra, quiet=quiet).items()}
        answer = evaluate_shredded(loaded, given, algebra)
        odds = _odds(chances or [])
        missing = [str(name) for name in variables_of(answer) if name not in odds]
        if chances and missing:
            raise typer.BadParameter(f"nothing is said of {', '.join(missing)}", param_hint="-p")
        found = worlds_of(answer, algebra, coin_flips(odds | dict.fromkeys(missing, 0.5)), Boolean())
        plain = annotations_of(Boolean())
        if form == Format.JSON:
            listed = [
                {**({"probability": chance} if chances else {}), "answer": to_json(world, plain)}
                for world, chance in found.items()
            ]
            typer.echo(json.dumps(listed, ensure_ascii=False, indent=2))
            return
        for number, (world, chance) in enumerate(found.items(), 1):
            show(out, f"world {number}" + (f"  {chance:.6g}" if chances else ""))
            lines = (xml_lines if form == Format.XML else text_lines)(world, plain)
            for line in lines:
                show(out, f"  {line}")


@trees.command("shred")
def shred_query(
    query: QueryArgument,
    documents: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME=FILE…]", help="Documents to shred too.")
    ] = None,
    *,
    facts: Annotated[
        Path | None,
        typer.Option("-F", "--fact-dir", metavar="DIR", help="Where the documents go as facts.", file_okay=False),
    ] = None,
    quiet: QuietOption = False,
) -> None:
    """Print the rules that a query is compiled to; with -F, write its documents as their facts.

    `whence eval` and `whence run` take both: the nodes of the answer, without annotations.
    """
    algebra = Boolean()
    if (facts is None) != (not documents):
        raise typer.BadParameter("documents go to a folder, and a folder needs documents", param_hint="-F")
    with reported_errors():
        compiled = compile_query(_load(query, algebra, documents))
        given = {name: each[-1][1] for name, each in _read(documents or (), None, algebra, quiet=quiet).items()}
        typer.echo(compiled.text, nl=False)
        if facts is not None:
            facts.mkdir(parents=True, exist_ok=True)
            rows = base_rows(compiled, given, algebra)
            for each in compiled.program.transfers_of("input"):
                relation = compiled.program.relations[each.relation]
                transfer = replace(each, kind="output", params={**each.params, "filename": f"{relation.name}.facts"})
                write_relation(transfer, relation, compiled.program.types, rows[relation.name], facts)


@trees.command("follow")
def follow_versions(
    query: QueryArgument,
    documents: DocumentsArgument,
    *,
    semiring: SemiringOption = None,
    policies: AnnotateOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object for each change.")] = False,
    quiet: QuietOption = False,
) -> None:
    """Keep the answer of a query while documents change: a name that comes again is the next version of its document.

    Prints what changes in the answer with each version: + what comes, - what goes, = what has another annotation.
    """
    algebra = SEMIRINGS[semiring or "boolean"]
    with reported_errors():
        loaded = _load(query, algebra, documents)
        given = _read(documents, policies, algebra, quiet=quiet)
        first = {name: versions[0][1] for name, versions in given.items()}
        kept = Maintained(loaded, first, algebra)
        for name, versions in given.items():
            for file, forest in versions[1:]:
                if not as_json:
                    show(out, str(file))
                for change in kept.replace(name, forest):
                    _print_change(change, file, algebra, as_json=as_json)


# -- what comes in


def _implied(semiring: str | None, implied: dict[str, bool]) -> str:
    wanted = [name for name, given in implied.items() if given]
    options = {"access": "--as", "posbool": "-p"}
    for name in wanted:
        if (semiring or wanted[0]) != name:
            raise typer.BadParameter(f"needs annotations in {name}", param_hint=options[name])
    return semiring or (wanted[0] if wanted else "boolean")


def _load(query: str, semiring: Semiring[Any], documents: Iterable[str] | None) -> Query:
    """The query, and whether it asks for documents that are not given."""
    names = None if documents is None else [name for name, _ in _named(documents, needs_name=True)]
    if "$" not in query or Path(query).is_file():
        if not Path(query).is_file():
            raise no_file(Path(query), "QUERY")
        return load_query_file(Path(query), semiring, documents=names)
    return load_query(query, semiring, documents=names)


def _read(
    documents: Iterable[str],
    policies: list[str] | None,
    semiring: Semiring[Any],
    *,
    tokens: bool = False,
    quiet: bool,
) -> dict[str, list[tuple[Path, Forest[Any]]]]:
    """The versions of each document, annotated; says what is lost."""
    rules = [(name, read_policy(path, semiring)) for name, path in _named(policies or (), needs_name=False)]
    found: dict[str, list[tuple[Path, Forest[Any]]]] = {}
    for name, path in _named(documents, needs_name=True):
        document = read_document(path, semiring, tokens=tokens)
        forest = document.forest
        for applies_to, steps in rules:
            for step, value in steps if applies_to in ("", name) else ():
                forest = annotate(forest, step, value, semiring)
        for loss in () if quiet else document.losses:
            show(err, f"warning: {path}: {loss}")
        found.setdefault(name, []).append((path, forest))
    return found


def _named(given: Iterable[str], *, needs_name: bool) -> list[tuple[str, Path]]:
    found = []
    for text in given:
        name, equals, file = text.partition("=") if "=" in text else ("", "", text)
        if needs_name and not (equals and name.isidentifier()):
            raise typer.BadParameter(f"{text} is not NAME=FILE; in the query the document is $NAME")
        if not Path(file).is_file():
            raise no_file(Path(file))
        found.append((name, Path(file)))
    return found


def _odds(chances: list[str]) -> dict[Any, float]:
    odds: dict[Any, float] = {}
    for text in chances:
        name, _, number = text.partition("=")
        try:
            odds[name] = float(number)
        except ValueError:
            odds[name] = -1
        if not 0 <= odds[name] <= 1:
            raise typer.BadParameter(f"{text} is not VARIABLE=P with P between 0 and 1", param_hint="-p")
    return odds


def _evaluator(engine: Engine) -> Callable[[Query, dict[str, Forest[Any]], Semiring[Any]], Forest[Any]]:
    if engine == Engine.SPARK:
        with extra("spark"):
            from whence.backends.spark.session import spark_session  # noqa: PLC0415 - brings Spark
            from whence.trees.on_spark import evaluate_on_spark  # noqa: PLC0415

        return lambda query, documents, semiring: evaluate_on_spark(query, documents, semiring, spark_session())
    return evaluate_query if engine == Engine.RECURSION else evaluate_shredded


# -- what goes out


def _print(forest: Forest[Any], annotations: Show, form: Format) -> None:
    if form == Format.JSON:
        typer.echo(json.dumps(to_json(forest, annotations), ensure_ascii=False, indent=2))
        return
    for line in (xml_lines if form == Format.XML else text_lines)(forest, annotations):
        typer.echo(line)


def _print_change(change: Change[Any], file: Path, semiring: Semiring[Any], *, as_json: bool) -> None:
    before, after = (None if value is None else semiring.format(value) for value in (change.before, change.after))
    op = "-" if after is None else "+" if before is None else "="
    if as_json:
        shown = to_json(KSet({change.tree: semiring.one}), annotations_of(semiring))[0]
        record = {"version": str(file), "op": op, "path": change.path, "tree": shown, "before": before, "after": after}
        typer.echo(json.dumps(record, ensure_ascii=False))
        return
    kept = after if after is not None else before
    note = f"  ^ {before} -> {after}" if op == "=" else "" if kept == semiring.format(semiring.one) else f"  ^ {kept}"
    show(out, f"{op} {'/'.join((*change.path, one_line(change.tree, semiring)))}{note}")
