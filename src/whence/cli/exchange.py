"""`whence exchange`: peers that share data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from whence.cli.evaluate import reported_errors, shown_warnings
from whence.cli.functions import load_functions
from whence.cli.mistakes import instead_of, unknown
from whence.cli.programs import FunctionsOption
from whence.cli.reasoning import SemiringOption as ReasoningSemiringOption
from whence.cli.reasoning import mapping_lines
from whence.cli.terminal import counted, err, out, show
from whence.cli.why import Format, print_answer, print_graph
from whence.exchange.answers import answers, sql_answers
from whence.exchange.check import load_confederation_file
from whence.exchange.compile import compile_confederation
from whence.exchange.explain import ExchangeDerivations, cost_in_eyes_of, restrict
from whence.exchange.instance import ON_SPARK, STRATEGIES, Delta, Edit, Instance
from whence.exchange.model import Files
from whence.exchange.parser import read_files
from whence.exchange.peer import Imported, Peer
from whence.exchange.queries import superfluous_mappings
from whence.exchange.reconcile import Conflict
from whence.exchange.replica import Replica
from whence.exchange.rows import parse_row, show_row, sort_rows
from whence.exchange.store import SharedStore
from whence.lang.types import Tuple
from whence.provenance.expand import derivation_graph
from whence.provenance.graph import DerivationGraph, Fact
from whence.provenance.how import how
from whence.provenance.show import show_value
from whence.provenance.solve import solve_graph
from whence.provenance.why import why as ask
from whence.semiring import SEMIRINGS

exchange = typer.Typer(
    help="Share data between peers that half trust each other: publish, import, decide, ask.", no_args_is_help=True
)

FolderArgument = Annotated[
    Path,
    typer.Argument(metavar="DIR", help="The folder of a peer.", exists=True, file_okay=False, show_default=False),
]
TextArgument = Annotated[
    Path,
    typer.Argument(
        metavar="CONFEDERATION", help="A file, or a folder with a file NAME.peers for each peer.", exists=True
    ),
]
RowArgument = Annotated[
    str, typer.Argument(metavar="ROW", help="""A row, such as 'B(4472, "Periplaneta americana")'.""")
]
PreviewOption = Annotated[bool, typer.Option("--preview", help="Only show what would happen.")]
StrategyOption = Annotated[
    str, typer.Option(metavar="NAME", help=f"How rows are kept current: {', '.join(STRATEGIES)}; or on {ON_SPARK}.")
]
_MOST = 20


@contextmanager
def _answering() -> Iterator[None]:
    with reported_errors(), shown_warnings(quiet=True):
        try:
            yield
        except ValueError as error:
            show(err, f"error: {error}")
            raise typer.Exit(1) from None


@contextmanager
def _opened(folder: Path, functions: Path | None, strategy: str = "support") -> Iterator[Peer]:
    with _answering(), Peer.open(folder, functions=load_functions(functions), strategy=strategy) as peer:
        yield peer


# -- beginning --------------------------------------------------------------------------------------------------------


@exchange.command()
def init(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The peer's folder, which is made.")],
    confederation: Annotated[
        Path | None,
        typer.Argument(
            metavar="[CONFEDERATION]",
            help="For the first peer of a store, and for one that the confederation does not know yet.",
            exists=True,
        ),
    ] = None,
    *,
    peer: Annotated[str, typer.Option(metavar="NAME", help="Which peer of the confederation this is.")],
    store: Annotated[Path, typer.Option(metavar="DIR", help="Where peers publish. Made if it is not there.")],
    tables: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="sqlite:FILE, duckdb:FILE, parquet:FOLDER or postgresql://…; else CSV files in DIR/tables.",
        ),
    ] = None,
    sign: Annotated[bool, typer.Option("--sign", help="Make a key, and sign whatever the peer publishes.")] = False,
) -> None:
    """Make a peer: a folder with its tables, at a store that it shares with others."""
    with _answering():
        if sign and confederation is None:
            raise typer.BadParameter("a key is part of the confederation: give its text", param_hint="--sign")
        files = None if confederation is None else _named_files(confederation)
        Peer.create(folder, peer, store.resolve(), files=files, signed=sign, where=tables).close()
    show(out, f"{peer} is in {folder}; its tables are in {tables or folder / 'tables'}")


def _named_files(path: Path) -> Files:
    """By their own names: where they were when they were published says nothing to others."""
    return tuple((Path(name).name, text) for name, text in read_files(path))


@exchange.command()
def check(
    confederation: TextArgument,
    *,
    functions: FunctionsOption = None,
    redundant: Annotated[
        bool, typer.Option("--redundant", help="Name the mappings that others make superfluous, too.")
    ] = False,
    semiring: ReasoningSemiringOption = "boolean",
) -> None:
    """Say what is wrong with a confederation: every mistake with its place, and cycles that invent values for ever."""
    with _answering():
        found = load_confederation_file(confederation)
        compile_confederation(found, load_functions(functions))
        superfluous = superfluous_mappings(found, semiring, load_functions(functions)) if redundant else []
    for each in superfluous:
        show(out, f"mapping {each.name} can go: others make as much")
        for line in mapping_lines(each.mappings):
            show(out, line)
    parts = [counted(len(found.peers), "peer"), counted(len(found.relations), "relation")]
    policies = sum(len(found.policies_of(peer)) for peer in found.peers)
    names = {mapping.name for mapping in found.mappings.values() if not mapping.name.endswith("_back")}
    parts += [counted(len(names), "mapping"), counted(policies, "policy")]
    parts += [counted(len(superfluous), "redundant mapping")] if redundant else []
    show(out, f"ok: {', '.join(parts)}")


# -- exchanging -------------------------------------------------------------------------------------------------------


@exchange.command()
def status(folder: FolderArgument, *, functions: FunctionsOption = None) -> None:
    """Say what a peer has, what it has not published, what it has not read, and what it has to decide."""
    with _opened(folder, functions) as peer:
        found = peer.status()
        show(out, f"{found.peer} has read {found.read} of {counted(found.last, 'entry')}")
        table = Table("relation", "rows", "own", "rejected", "lost")
        for name, numbers in found.rows.items():
            table.add_row(name, *(f"{numbers[part]:,}" for part in ("rows", "local", "rejected", "lost")))
        out.print(table)
        if found.edits:
            show(out, "not published:")
            _show_edits(found.edits)
        _show_conflicts(found.deferred)


@exchange.command()
def publish(folder: FolderArgument, *, preview: PreviewOption = False, functions: FunctionsOption = None) -> None:
    """Publish what users changed in the tables. Others see it when they import."""
    with _opened(folder, functions) as peer:
        edits = peer.pending_edits()
        _show_edits(edits)
        if not edits:
            show(out, "nothing to publish")
        elif preview:
            _show_delta(peer.instance.trial(edits), peer.name, "would change, for all who import it:", others=True)
        else:
            entry = peer.publish()
            assert entry is not None
            show(out, f"published as entry {entry.number}")


@exchange.command("import")
def import_(
    folder: FolderArgument,
    *,
    preview: PreviewOption = False,
    functions: FunctionsOption = None,
    strategy: StrategyOption = "support",
) -> None:
    """Publish, then read what others published, translate it, leave out what is not trusted, decide conflicts, and apply it."""
    with _opened(folder, functions, strategy) as peer:
        _show_imported(peer.preview() if preview else peer.import_(), peer.name)


@exchange.command()
def change(
    folder: FolderArgument,
    confederation: TextArgument,
    *,
    preview: PreviewOption = False,
    functions: FunctionsOption = None,
) -> None:
    """Publish another version of the confederation: the peer's schema, its policies, mappings that concern it."""
    with _opened(folder, functions) as peer:
        _change(peer, _named_files(confederation), preview=preview)


def _change(peer: Peer, files: Files, *, preview: bool) -> None:
    if preview:
        _show_delta(peer.preview_change(files), peer.name, "would change:", others=True)
    else:
        _show_imported(peer.change(files), peer.name)


# -- deciding ---------------------------------------------------------------------------------------------------------


@exchange.command()
def trust(
    folder: FolderArgument,
    policy: Annotated[
        str | None,
        typer.Argument(
            metavar="[POLICY]", help="""Such as 'distrusts B(b, n) from GUS if n = "x"', or 'charges m1 3'."""
        ),
    ] = None,
    *,
    undo: Annotated[bool, typer.Option("--undo", help="Take the policy back, by its name or its text.")] = False,
    preview: PreviewOption = False,
    functions: FunctionsOption = None,
) -> None:
    """Add a policy of the peer, or take one back. Without a policy, list them."""
    with _opened(folder, functions) as peer:
        if policy is None:
            for each in peer.confederation.policies_of(peer.name):
                name = getattr(each, "name", None)
                text = peer.confederation.text_of(each.span)
                show(out, text if name is None or text.startswith(f"{name}:") else f"{name}: {text}")
            return
        _change(peer, peer.without_policy(policy) if undo else peer.with_policy(policy), preview=preview)


@exchange.command()
def reject(
    folder: FolderArgument,
    row: RowArgument,
    *,
    undo: Annotated[bool, typer.Option("--undo", help="Let the row come back.")] = False,
    preview: PreviewOption = False,
    functions: FunctionsOption = None,
) -> None:
    """Take a row out for good, whoever brings it, with what follows from it."""
    with _opened(folder, functions) as peer:
        name, values = _row(peer, row)
        if preview:
            edits = [Edit("-", "rejected", name, values)] if undo else peer.rejection(name, values)
            _show_delta(peer.instance.trial(edits), peer.name, "would change:", others=True)
        else:
            _show_imported(peer.unreject(name, values) if undo else peer.reject(name, values), peer.name)


@exchange.command()
def resolve(
    folder: FolderArgument,
    row: Annotated[str | None, typer.Argument(metavar="[ROW]", help="The row that is right.")] = None,
    *,
    undo: Annotated[bool, typer.Option("--undo", help="Forget what was decided about the row's key.")] = False,
    functions: FunctionsOption = None,
) -> None:
    """Decide a conflict: this row, and none of the others with its key. Without a row, list what is to be decided."""
    with _opened(folder, functions) as peer:
        if row is None:
            conflicts = peer.status().deferred
            _show_conflicts(conflicts)
            if not conflicts:
                show(out, "nothing to decide")
            return
        name, values = _row(peer, row)
        _show_imported(peer.undo(name, values) if undo else peer.resolve(name, values), peer.name)


# -- asking -----------------------------------------------------------------------------------------------------------

AtOption = Annotated[
    int | None, typer.Option("--at", min=1, metavar="N", help="As of entry N, with the confederation of then.")
]


@exchange.command()
def why(
    folder: FolderArgument,
    row: RowArgument,
    *,
    everything: Annotated[bool, typer.Option("--all", help="All derivations, not only the smallest proof.")] = False,
    through: Annotated[
        list[str] | None, typer.Option(metavar="MAPPING", help="Only derivations by these mappings.")
    ] = None,
    source: Annotated[
        list[str] | None, typer.Option("--from", metavar="PEER", help="Only derivations from base rows of these peers.")
    ] = None,
    semiring: Annotated[
        str | None, typer.Option(metavar="NAME", help=f"Its value in a semiring: {', '.join(SEMIRINGS)}.")
    ] = None,
    cost: Annotated[bool, typer.Option("--cost", help="What the row costs the peer in trust.")] = False,
    shape: Annotated[
        Format, typer.Option("--format", help="Text, Graphviz, a picture, a page, or W3C PROV.")
    ] = Format.TEXT,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    at: AtOption = None,
    functions: FunctionsOption = None,
) -> None:
    """Show why a row is there: from whom, through which mappings. The exit code is 1 if it is not."""
    with _opened(folder, functions) as peer:
        fact = Fact(*_row(peer, row))
        instance = peer.instance if at is None else _instance_at(peer, at)
        _check_known(through, [*instance.confederation.mappings], "mapping")
        _check_known(source, instance.confederation.peers, "peer")
        if not instance.holds(*fact):
            hint = "whence exchange whynot says why" if at is None else f"not as of entry {at}"
            raise ValueError(f"there is no {show_row(*fact)}: {hint}")
        derivations = ExchangeDerivations(instance)
        if cost:
            show(out, f"{show_row(*fact)} costs {peer.name} {peer.cost(*fact):g}")
        elif semiring is None and not (everything or through or source):
            print_answer(ask(derivations, *fact), shape, as_json=as_json)
        else:
            graph = restrict(derivation_graph(derivations, [fact]), mappings=through or None, peers=source or None)
            if semiring is None:
                print_graph(graph, derivations.program, shape, as_json=as_json)
            else:
                show(out, _value(graph, semiring, peer))


def _instance_at(peer: Peer, number: int) -> Instance:
    if number > peer.store.last:
        raise ValueError(f"there is no entry {number}: the last is {peer.store.last}")
    return Replica.at(peer.store, number, functions=peer.functions).instance


def _check_known(names: Iterable[str] | None, known: Iterable[str], what: str) -> None:
    for name in names or ():
        if name not in known:
            raise ValueError(f"there is no {what} {name}; {instead_of(name, known)}")


def _value(graph: DerivationGraph, name: str, peer: Peer) -> str:
    if name not in SEMIRINGS:
        raise unknown("semiring", name, SEMIRINGS, "--semiring")
    if name == "tropical":
        annotate, rules = cost_in_eyes_of(peer.instance, peer.name)
        return f"{solve_graph(graph, SEMIRINGS[name], annotate, rules=rules)[graph.roots[0]]:g}"
    return how(graph, graph.roots[0], name)


@exchange.command()
def whynot(folder: FolderArgument, row: RowArgument, *, functions: FunctionsOption = None) -> None:
    """Show why a row is not there: whose rejection, which policy, which conflict, or what is missing. 1 if it is there."""
    with _opened(folder, functions) as peer:
        name, values = _row(peer, row)
        reasons = peer.whynot(name, values)
        for reason in reasons:
            for line in reason.lines():
                show(out, line)
        if not reasons:
            show(out, f"{show_row(name, values)} is there: whence exchange why says why")
            raise typer.Exit(1)


@exchange.command()
def uses(folder: FolderArgument, row: RowArgument, *, functions: FunctionsOption = None) -> None:
    """Show who has rows that follow from this one, and through which mappings."""
    with _opened(folder, functions) as peer:
        found = peer.uses(*_row(peer, row))
        for fact, way in found.items():
            show(out, f"{show_row(*fact)}  by {', '.join(way)}")
        if not found:
            show(out, "nobody uses it")


@exchange.command()
def query(
    folder: FolderArgument,
    question: Annotated[
        str, typer.Argument(metavar="RULES|SQL", help="Such as 'ans(n) :- B(b, n).' or 'SELECT name FROM B'.")
    ],
    *,
    nulls: Annotated[bool, typer.Option("--nulls", help="Also answers that hold invented values.")] = False,
    functions: FunctionsOption = None,
) -> None:
    """Ask what holds, whatever values the invented ones stand for."""
    with _opened(folder, functions) as peer:
        files = peer.replica.files
        if question.lstrip().upper().startswith(("SELECT", "WITH")):
            found = sql_answers(peer.instance, files, peer.name, question, nulls=nulls)
        else:
            found = answers(peer.instance, files, question, nulls=nulls)
        for row in sort_rows(found):
            typer.echo("\t".join(value if isinstance(value, str) else show_value(value) for value in row))


@exchange.command()
def verify(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="A peer's folder, or a store.", exists=True, file_okay=False)
    ],
    *,
    functions: FunctionsOption = None,
) -> None:
    """Check every entry, its hash, its signature and its right to be there; and that a peer's rows are what follows from them."""
    with _answering():
        registered = load_functions(functions)
        if not (folder / "peer.json").exists():
            replica = Replica.at(SharedStore.open(folder), functions=registered)
            show(out, f"ok: {replica.number} entries, {len(replica.instance.confederation.peers)} peers")
            return
        with Peer.open(folder, functions=registered) as peer:
            Replica.at(peer.store, functions=registered)
            problems = list(peer.differences())
            for problem in problems:
                show(out, problem)
            if problems:
                raise typer.Exit(1)
            show(out, f"ok: {peer.read} entries read, {', '.join(each.full_name for each in peer.relations)}")


# -- showing ----------------------------------------------------------------------------------------------------------


def _row(peer: Peer, text: str) -> tuple[str, Tuple]:
    name, values = parse_row(text)
    relation = peer.relation(name).full_name
    peer.instance.rows.to_engine(relation, values)
    return relation, values


def _show_edits(edits: Iterable[Edit]) -> None:
    words = {
        ("+", "local"): "+",
        ("-", "local"): "-",
        ("+", "rejected"): "reject",
        ("-", "rejected"): "no longer reject",
    }
    words |= {
        ("+", "lost"): "lost",
        ("-", "lost"): "no longer lost",
        ("+", "chosen"): "chosen",
        ("-", "chosen"): "no longer chosen",
    }
    for op, part, name, row in edits:
        show(out, f"  {words[op, part]} {show_row(name, row)}")


def _show_delta(delta: Delta, peer: str, title: str, *, others: bool = False) -> None:
    shown = delta if others else delta.of(peer)
    lines = [
        f"  {op} {show_row(name, row)}"
        for op, side in (("-", shown.deleted), ("+", shown.inserted))
        for name in sorted(side)
        for row in sort_rows(side[name])
    ]
    show(out, title if lines else "nothing changes")
    for line in lines[:_MOST]:
        show(out, line)
    if len(lines) > _MOST:
        show(out, f"  and {len(lines) - _MOST:,} more")


def _show_conflicts(conflicts: Iterable[Conflict]) -> None:
    for conflict in conflicts:
        key = ", ".join(show_value(value) for value in conflict.key)
        show(out, f"to be decided, {conflict.relation} with key {key}:")
        for row, cost in conflict.rows:
            show(out, f"  {show_row(conflict.relation, row)}  costs {cost:g}")


def _show_imported(result: Imported, peer: str) -> None:
    others = [entry for entry in result.entries if entry.peer != peer]
    if others:
        names = ", ".join(dict.fromkeys(entry.peer for entry in others))
        show(out, f"read {counted(len(others), 'entry')} of {names}")
    if result.decisions:
        show(out, "decided:")
        _show_edits(result.decisions)
    _show_delta(result.delta, peer, "changed:")
    _show_conflicts(result.deferred)
