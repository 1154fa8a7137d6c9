"""`whence events`: event programs, what happened to each event, and why."""

from __future__ import annotations

import json
import sys
from contextlib import ExitStack
from enum import StrEnum
from io import BufferedIOBase
from pathlib import Path
from typing import Annotated, Any, cast

import typer
from rich.table import Table

from whence.cli.evaluate import read_inputs, reported_errors, shown_warnings
from whence.cli.functions import load_functions
from whence.cli.mistakes import unknown
from whence.cli.programs import ConfinedOption, FunctionsOption, ProgramArgument, existing_file, load_program
from whence.cli.progress import Progress
from whence.cli.terminal import err, out, show, show_diagnostic
from whence.events.answers import difference_text, shortfall_json, shortfall_text, trees_json, trees_text
from whence.events.compare import compare_trees
from whence.events.feed import COMMIT_EVERY, Feed, output_line
from whence.events.figures import figures_of
from whence.events.keys import equivalence_keys, printed_keys
from whence.events.program import EventProgram, event_program
from whence.events.questions import Questions, Trees
from whence.events.retention import Policy, retain
from whence.events.shortfall import shortfalls
from whence.events.store import EventStore
from whence.events.verify import problems_of
from whence.events.walk import HOPS
from whence.io import read_relation
from whence.io.confined import refuse_files_outside
from whence.io.updates import DeadLetterFile
from whence.lang.program import Transfer
from whence.lang.tree import NOWHERE
from whence.lang.types import Tuple
from whence.pipeline.lines import Lines, StreamLines
from whence.provenance.base import free_facts, parse_fact
from whence.provenance.export import EXPORTS, graph_of_proof
from whence.provenance.graph import Fact

events = typer.Typer(
    help="Run event programs, keep what is needed to say why, and ask.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)

StoreArgument = Annotated[
    Path, typer.Argument(metavar="DIR", help="The folder of a store.", exists=True, file_okay=False, show_default=False)
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="No warnings, no progress.")]


class Scheme(StrEnum):
    EXSPAN = "exspan"
    BASIC = "basic"
    ADVANCED = "advanced"
    REPLAY = "replay"


class Format(StrEnum):
    TEXT = "text"
    DOT = "dot"
    SVG = "svg"
    HTML = "html"
    PROV = "prov"


@events.command("keys")
def show_keys(
    program: ProgramArgument,
    *,
    functions: FunctionsOption = None,
    confined: ConfinedOption = False,
    printed: Annotated[bool, typer.Option(help="The two published analyses too, which miss keys.")] = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Say which attributes of an event decide what happens to it, and what asks for each.

    Events that agree on these keys share a tree.
    """
    with reported_errors():
        checked = event_program(load_program(program, functions, confined=confined))
        found = equivalence_keys(checked)
        if not quiet:
            for each in (*checked.warnings, *found.warnings):
                show_diagnostic(err, each, checked.program.source)
    others = {name: list(columns) for name, columns in printed_keys(checked).items()} if printed else {}
    if as_json:
        reasons = [
            {
                "column": key.column,
                "name": key.name,
                "rule": key.reason.rule or None,
                "reason": key.reason.text,
                "path": [{"relation": at.relation, "column": at.column, "rule": rule} for at, rule in key.path],
            }
            for key in found.keys
        ]
        answer: dict[str, Any] = {"event": found.event, "keys": list(found.columns), "reasons": reasons}
        typer.echo(json.dumps(answer | ({"printed": others} if printed else {}), ensure_ascii=False))
        return
    table = Table("key", "attribute", "because", title=f"keys of {found.event}", title_justify="left")
    for key in found.keys:
        way = "".join(f"becomes {at.relation}:{at.column} in {rule}; " for at, rule in key.path)
        rule = f"{key.reason.rule}: " if key.reason.rule else ""
        table.add_row(str(key.column), key.name, f"{way}{rule}{key.reason.text}")
    out.print(table)
    for name, columns in others.items():
        show(out, f"{name}: {', '.join(map(str, columns))}")


@events.command("run")
def run_events(
    program: ProgramArgument,
    *,
    arriving: Annotated[
        Path,
        typer.Option(
            "--events",
            metavar="FILE|DIR|-",
            help="Update records, one a line: events, and changes of slow relations between them.",
        ),
    ],
    store: Annotated[
        Path, typer.Option("--store", metavar="DIR", help="Where what happened is kept.", file_okay=False)
    ],
    facts: Annotated[
        Path, typer.Option("-F", "--fact-dir", metavar="DIR", help="Where the files of slow relations are.")
    ] = Path(),
    scheme: Annotated[Scheme, typer.Option(help="What is written down of each event.")] = Scheme.ADVANCED,
    functions: FunctionsOption = None,
    confined: ConfinedOption = False,
    outputs: Annotated[
        Path | None, typer.Option("--outputs", metavar="FILE|-", help="Write each output too, a JSON object a line.")
    ] = None,
    dead_letters: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Where records go that could not be taken, with the reason.")
    ] = None,
    commit_every: Annotated[
        int, typer.Option(min=1, metavar="N", help="Make durable what has been taken after every N records.")
    ] = COMMIT_EVERY,
    hops: Annotated[int, typer.Option(min=1, max=500, metavar="N", help="How far an event may go.")] = HOPS,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Run events through a program, and keep what is needed to say why each output came.

    A run that was interrupted goes on where it stopped: nothing is lost, nothing is counted twice.
    """
    with reported_errors(), shown_warnings(quiet=quiet), ExitStack() as stack:
        checked = event_program(load_program(program, functions, confined=confined))
        if confined:
            refuse_files_outside(checked.program, facts, None)
        if not quiet and not as_json:
            for each in (*checked.program.warnings, *equivalence_keys(checked).warnings):
                show_diagnostic(err, each, checked.program.source)
        progress = stack.enter_context(Progress(err, "reading", quiet=quiet))
        kept = stack.enter_context(EventStore(checked, store, scheme=scheme.value, hops=hops))
        if kept.tables.commits == 0:
            kept.load(_slow_facts(checked, facts, progress))
        letters = DeadLetterFile(dead_letters or store / "dead-letters.jsonl", resume=kept.runs > 0)
        feed = Feed(kept, lambda letter, _: letters.add(letter), commit_every=commit_every)
        if outputs is not None:
            file = sys.stdout if outputs == Path("-") else stack.enter_context(outputs.open("w", encoding="utf-8"))

            def deliver(run: int, found: list[Fact]) -> None:
                progress.text = f"running events: {run:,}"
                for each in found:
                    file.write(output_line(run, each, kept) + "\n")

            feed.deliver = deliver
        feed.take(_lines(arriving, kept))
        if outputs == Path("-"):
            sys.stdout.flush()
        summary = {
            "events": feed.events,
            "outputs": feed.outputs,
            "changes": feed.changes,
            "ignored": feed.ignored,
            "dead_letters": letters.count,
            **figures_of(kept),
        }
    _print_figures(summary, as_json=as_json, console=err if outputs == Path("-") else out)


@events.command("why")
def why(
    folder: StoreArgument,
    fact: Annotated[
        str | None,
        typer.Argument(metavar="[TUPLE]", help="""An output, such as 'recv("n3", "x")'; or an event."""),
    ] = None,
    *,
    event: Annotated[str | None, typer.Option(metavar="TUPLE", help="Only trees that began with this event.")] = None,
    by_class: Annotated[
        str | None,
        typer.Option("--class", metavar="VALUES", help="All of a class: the values of the keys, as JSON list."),
    ] = None,
    place: Annotated[str | None, typer.Option(help="All outputs at a place.")] = None,
    since: Annotated[
        float | None, typer.Option(metavar="TIME", help="With --place: of events from this time on.")
    ] = None,
    until: Annotated[
        float | None, typer.Option(metavar="TIME", help="With --place: of events up to this time.")
    ] = None,
    functions: FunctionsOption = None,
    shape: Annotated[
        Format, typer.Option("--format", help="Text, Graphviz, a picture, a page, or W3C PROV as JSON.")
    ] = Format.TEXT,
    as_json: JsonOption = False,
) -> None:
    """Show how outputs came about: the events, the steps they took, and the slow tuples each step used.

    Every tree is run again and compared before it is shown. The exit code is 1 if there is none.
    """
    with reported_errors():
        store = EventStore.read(folder, load_functions(functions))
        questions = Questions(store)
        if place is not None:
            found = questions.of_place(place, since, until)
        elif by_class is not None:
            found = questions.of_class(_class_values(by_class, store))
        elif fact is None:
            raise typer.BadParameter("name an output or an event, or give --place or --class", param_hint="TUPLE")
        else:
            asked = _fact(fact, store)
            began = None if event is None else _fact(event, store)
            if asked.relation == store.events.event and began is None:
                found = questions.of_event(asked)
            else:
                found = questions.of_output(asked, began)
        _print_trees(found, store, shape, as_json=as_json)
    if not found.trees:
        raise typer.Exit(1)


@events.command("whynot")
def whynot(
    folder: StoreArgument,
    event: Annotated[str, typer.Argument(metavar="EVENT", help="An event, whether or not it came in.")],
    *,
    as_of: Annotated[
        float | None,
        typer.Option(metavar="TIME", help="With the slow relations as they were then."),
    ] = None,
    functions: FunctionsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show how far an event gets, and what it misses there.

    An event that came in is looked at in the configuration that it met.
    """
    with reported_errors():
        store = EventStore.read(folder, load_functions(functions))
        asked = _fact(event, store)
        if asked.relation != store.events.event:
            raise typer.BadParameter(
                f"{asked.relation} is not the event relation, {store.events.event}", param_hint="EVENT"
            )
        configuration = _configuration(store, asked, as_of)
        found = shortfalls(store, asked, configuration)
    if as_json:
        typer.echo(json.dumps(shortfall_json(found, configuration, store), ensure_ascii=False, indent=2))
    else:
        show(out, shortfall_text(found, asked, configuration))
    raise typer.Exit(0 if found else 1)


@events.command("trace")
def trace(
    folder: StoreArgument,
    event: Annotated[str, typer.Argument(metavar="EVENT", help="An event, whether or not it came in.")],
    *,
    as_of: Annotated[
        float | None, typer.Option(metavar="TIME", help="With the slow relations as they were then.")
    ] = None,
    functions: FunctionsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show what an event would lead to now, or would have led to at another time."""
    with reported_errors():
        store = EventStore.read(folder, load_functions(functions))
        asked = _fact(event, store)
        configuration = store.history.configuration if as_of is None else store.history.at(as_of)
        found = Questions(store).hypothetical(asked, configuration)
        _print_trees(found, store, Format.TEXT, as_json=as_json)
    if not found.trees:
        raise typer.Exit(1)


@events.command("diff")
def diff(
    folder: StoreArgument,
    one: Annotated[str, typer.Argument(metavar="TUPLE", help="An output.")],
    other: Annotated[str, typer.Argument(metavar="TUPLE", help="Another output.")],
    *,
    functions: FunctionsOption = None,
) -> None:
    """Show what differs between the ways of two outputs: where they part, and which slow tuples only one of them used."""
    with reported_errors():
        store = EventStore.read(folder, load_functions(functions))
        questions = Questions(store)
        left, right = (questions.of_output(_fact(text, store)) for text in (one, other))
        for text, found in ((one, left), (other, right)):
            if not found.trees:
                show(err, f"error: there is no tree of {text}")
                raise typer.Exit(1)
        difference = compare_trees(left.trees[-1].tree, right.trees[-1].tree, store.history)
    show(out, difference_text(difference, one, other))


@events.command("figures")
def show_figures(folder: StoreArgument, *, functions: FunctionsOption = None, as_json: JsonOption = False) -> None:
    """Say what a store holds: events, rows and bytes of each table."""
    with reported_errors():
        found = figures_of(EventStore.read(folder, load_functions(functions)))
    _print_figures(found, as_json=as_json, console=out)


@events.command("verify")
def verify(folder: StoreArgument, *, functions: FunctionsOption = None, quiet: QuietOption = False) -> None:
    """Check every file, and rebuild and compare the tree of every output. The exit code is 1 if anything is wrong."""
    with reported_errors(), Progress(err, "verifying", quiet=quiet):
        store = EventStore.read(folder, load_functions(functions))
        problems = list(problems_of(store))
    for problem in problems:
        show(out, problem)
    if problems:
        raise typer.Exit(1)
    show(out, f"ok: {store.runs:,} events, {len(store.tables['outputs']):,} outputs")


@events.command("retain")
def retain_events(
    folder: StoreArgument,
    *,
    relation: Annotated[
        list[str] | None, typer.Option(metavar="R", help="A relation of interest; all of them if not given.")
    ] = None,
    age: Annotated[
        float | None, typer.Option(min=0, metavar="TIME", help="Keep outputs of events not older than this.")
    ] = None,
    count: Annotated[int | None, typer.Option(min=0, metavar="N", help="Keep the last N outputs.")] = None,
    size: Annotated[
        int | None, typer.Option("--bytes", min=0, metavar="N", help="Keep so many bytes of events at most.")
    ] = None,
    functions: FunctionsOption = None,
) -> None:
    """Forget old outputs, and everything that only they needed."""
    if age is None and count is None and size is None:
        raise typer.BadParameter("nothing says what stays; give --age, --count or --bytes")
    with reported_errors():
        about = EventStore.read(folder, load_functions(functions))
        missing = set(relation or ()) - set(about.events.outputs)
        if missing:
            raise unknown("output", min(missing), about.events.outputs, "--relation")
        with EventStore(about.events, folder, scheme=about.scheme.name) as store:
            gone = retain(store, dict.fromkeys(relation or about.events.outputs, Policy(age, count, size)))
    for name, number in gone.rows.items():
        show(out, f"{name}: {number:,} rows went")
    if not gone.rows:
        show(out, "nothing went")


def _print_figures(found: dict[str, Any], *, as_json: bool, console: Any) -> None:
    if as_json:
        typer.echo(json.dumps(found, ensure_ascii=False))
        return
    table = Table(show_header=False)
    for name, value in found.items():
        text = ", ".join(f"{key} {each:,}" for key, each in value.items()) if isinstance(value, dict) else f"{value}"
        table.add_row(name.replace("_", " "), text)
    console.print(table)


def _print_trees(found: Trees, store: EventStore, shape: Format, *, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(trees_json(found, store), ensure_ascii=False, indent=2))
    elif shape is Format.TEXT:
        show(out, trees_text(found, store))
    elif found.trees:
        graph = graph_of_proof([each.tree for each in found.trees])
        typer.echo(EXPORTS[shape](graph, store.events.program))
    for each in found.missing:
        show(err, f"warning: the answer is incomplete: {each.reason}")


def _slow_facts(checked: EventProgram, folder: Path, progress: Progress) -> dict[str, set[Tuple]]:
    """What `.input` names; and of slow relations without it, what is in their files, if there are any."""
    program = checked.program
    found = read_inputs(program, folder, progress)
    found.pop(checked.event, None)
    named = {transfer.relation for transfer in program.transfers_of("input")}
    for name in checked.slow:
        if name not in named and (folder / f"{name}.facts").exists():
            found[name] = read_relation(
                Transfer("input", name, {}, NOWHERE), program.relations[name], program.types, folder
            )
    _, stated = free_facts(program)
    return {name: found.get(name, set()) | set(stated.get(name, ())) for name in checked.slow}


def _lines(path: Path, store: EventStore) -> Lines:
    if path == Path("-"):
        return StreamLines(cast(BufferedIOBase, sys.stdin.buffer), stopped=lambda: False)
    return Lines(path if path.is_dir() else existing_file(path), store.position)


def _fact(text: str, store: EventStore) -> Fact:
    try:
        return parse_fact(text, store.events.program)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="TUPLE") from None


def _class_values(text: str, store: EventStore) -> Tuple:
    names = [store.events.program.relations[store.events.event].fields[at].name for at in store.keys]
    try:
        values = json.loads(text)
    except json.JSONDecodeError:
        values = None
    if not isinstance(values, list) or len(values) != len(store.keys):
        raise typer.BadParameter(f"write the values of {', '.join(names)} as a JSON list", param_hint="--class")
    return tuple(values)


def _configuration(store: EventStore, event: Fact, as_of: float | None) -> int:
    if as_of is not None:
        return store.history.at(as_of)
    runs = [run for run in Questions(store).runs() if run.event == event]
    return runs[-1].configuration if runs else store.history.configuration
