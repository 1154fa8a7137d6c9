from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from whence import reference
from whence.backends.spark.options import Form, Mode
from whence.cli.annotate import AnnotateOption, SemiringOption, evaluate_in
from whence.cli.profiling import ProfileOption, ProfileToOption, tell_profile, waited, wanted_profile
from whence.cli.programs import ConfinedOption, FunctionsOption, ProgramArgument, SimplifyOption, load_program
from whence.cli.progress import Progress
from whence.cli.tables import CONSTRAINT_HINT, ReadTables
from whence.cli.terminal import err, show, show_diagnostic, summary_of
from whence.constraints import ConstraintError
from whence.io import FactError, is_large, output_path, print_size, read_from, read_rows, write_relation
from whence.io.confined import refuse_files_outside
from whence.lang import ProgramError
from whence.lang.bags import copies_of, repeated, with_copies
from whence.lang.load import ignored_in_one_shot, nothing_shown
from whence.lang.program import Program, Relation, Transfer
from whence.lang.types import Tuple
from whence.limits import Limits, OnRound, RunawayError
from whence.pipeline.extras import MissingExtra, extra
from whence.plan import restrict
from whence.reference.small import evaluate_if_small
from whence.semiring import NotInThisSemiring

if TYPE_CHECKING:
    from whence.engine.profile import Profile
    from whence.io.plain_columns import PlainColumns
    from whence.session import Session

RUNAWAY = 3


class Engine(StrEnum):
    AUTO = "auto"
    LOCAL = "local"
    REFERENCE = "reference"


class Backend(StrEnum):
    LOCAL = "local"
    SPARK = "spark"


def evaluate(
    program: ProgramArgument,
    *,
    facts: Annotated[
        Path,
        typer.Option("-F", "--fact-dir", metavar="DIR", help="Where the files of .input are.", rich_help_panel="Files"),
    ] = Path(),
    output: Annotated[
        Path,
        typer.Option(
            "-D",
            "--output-dir",
            metavar="DIR|-",
            help="Where the files of .output go; - prints them instead.",
            rich_help_panel="Files",
        ),
    ] = Path(),
    functions: FunctionsOption = None,
    confined: ConfinedOption = False,
    engine: Annotated[
        Engine,
        typer.Option(help="What evaluates the program; auto leaves little work to the reference, which starts sooner."),
    ] = Engine.AUTO,
    simplify: SimplifyOption = False,
    semiring: SemiringOption = None,
    annotate: AnnotateOption = None,
    backend: Annotated[
        Backend, typer.Option(help="Where: in this process, or on Spark.", rich_help_panel="Spark")
    ] = Backend.LOCAL,
    master: Annotated[
        str | None,
        typer.Option(
            metavar="URL", help="Spark's master, such as local[4]; all cores if not given.", rich_help_panel="Spark"
        ),
    ] = None,
    mode: Annotated[Mode, typer.Option(help="How recursion runs on Spark.", rich_help_panel="Spark")] = Mode.AUTO,
    form: Annotated[
        Form,
        typer.Option("--format", help="What Spark writes: fact files, or folders of parts.", rich_help_panel="Spark"),
    ] = Form.TEXT,
    max_rounds: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Stop a recursion that takes more rounds.", rich_help_panel="Limits"),
    ] = None,
    max_tuples: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Stop when there are more tuples; if not given, before memory runs out.",
            rich_help_panel="Limits",
        ),
    ] = None,
    timeout: Annotated[
        float | None,
        typer.Option(min=0, metavar="SECONDS", help="Stop after this time.", rich_help_panel="Limits"),
    ] = None,
    profile: ProfileOption = False,
    profile_to: ProfileToOption = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No warnings and no progress.")] = False,
) -> None:
    """Evaluate a program: read its inputs, write its outputs.

    R.facts holds the tuples of .input R, a line each, with tabs between the columns; .output R writes R.csv in the same
    form, sorted.

    The exit code is 1 if the program or its facts are wrong, 2 if the command is, 3 if a limit was reached.
    """
    if annotate and semiring is None:
        raise typer.BadParameter("needs --semiring, to say what annotations are", param_hint="--annotate")
    limits = Limits(max_rounds=max_rounds, max_tuples=max_tuples, timeout=timeout)
    folder = None if output == Path("-") else output
    _refuse_combinations(engine, backend, master=master, mode=mode, form=form)
    if simplify and (engine == Engine.REFERENCE or backend == Backend.SPARK) and semiring is None:
        raise typer.BadParameter("it is for --backend local and --engine local", param_hint="--simplify")
    costs = wanted_profile(profile, profile_to)
    if costs is not None and (engine == Engine.REFERENCE or backend == Backend.SPARK or semiring is not None):
        raise typer.BadParameter(
            "it is for --backend local and --engine local, without --semiring", param_hint="--profile"
        )
    with reported_errors(), shown_warnings(quiet=quiet):
        loaded = load_program(program, functions, confined=confined)
        if confined:
            refuse_files_outside(loaded, facts, folder)
        if not quiet:
            for warning in (*loaded.warnings, *ignored_in_one_shot(loaded), *nothing_shown(loaded)):
                show_diagnostic(err, warning, loaded.source)
        if backend == Backend.SPARK:
            with extra("spark"):
                from whence.cli.on_spark import evaluate_on_spark  # noqa: PLC0415 - brings Spark

            evaluate_on_spark(
                loaded,
                facts,
                folder,
                master=master,
                mode=mode,
                form=form,
                limits=limits,
                quiet=quiet,
                semiring=semiring,
                annotate=annotate or (),
            )
            return
        with Progress(err, "reading", quiet=quiet) as progress:
            in_session = semiring is None and engine != Engine.REFERENCE
            with waited(costs, "reading"):
                columns = _read_columns(loaded, facts) if in_session else {}
                given = read_inputs(_without_inputs(loaded, columns), facts, progress)
            progress.text, tell = "evaluating", _telling(progress)
            views: Mapping[str, Collection[Tuple]]
            evaluated: Session | None = None
            if semiring is not None:
                if simplify:
                    from whence.plan.simplify import simplify as without_superfluous  # noqa: PLC0415 - few want it

                    loaded, _ = without_superfluous(loaded, semiring)
                naive = engine == Engine.REFERENCE
                loaded, views = evaluate_in(
                    semiring, loaded, given, annotate, naive=naive, limits=limits, on_round=tell
                )
            else:
                views, evaluated = _evaluated(
                    loaded, given, columns, engine, limits=limits, on_round=tell, simplify=simplify, costs=costs
                )
        with waited(costs, "writing"):
            _write(loaded, views, evaluated, folder, quiet=quiet)
        if costs is not None and evaluated is not None:
            tell_profile(costs, evaluated, profile_to, title=f"whence eval {program}")


def _evaluated(
    program: Program,
    facts: Mapping[str, set[Tuple]],
    columns: Mapping[str, PlainColumns],
    engine: Engine,
    *,
    limits: Limits,
    on_round: OnRound,
    simplify: bool,
    costs: Profile | None,
) -> tuple[Mapping[str, Collection[Tuple]], Session | None]:
    """The wanted relations, and the session that has them, if there was one. Some of the facts may be given as columns."""
    wanted = wanted_of(program)
    if engine == Engine.REFERENCE:
        return reference.evaluate(restrict(program, wanted), facts, limits=limits, on_round=on_round), None
    if engine == Engine.AUTO and limits == Limits() and not simplify and costs is None and not columns:
        views = evaluate_if_small(restrict(program, wanted), facts, on_round=on_round)
        if views is not None:
            return views, None
    from whence import session  # noqa: PLC0415 - brings the engine

    given: dict[str, set[Tuple] | PlainColumns] = {**facts, **columns}
    try:
        found = session.evaluated(
            program, given, wanted=wanted, limits=limits, on_round=on_round, simplify=simplify, profile=costs
        )
    except ConstraintError as error:
        raise FactError([f"{error.broken.relation}, {error}"], hints=[CONSTRAINT_HINT]) from None
    return {name: found.relation(name) for name in wanted or program.relations}, found


def wanted_of(program: Program) -> tuple[str, ...] | None:
    """The relations that are shown; all of them, for the sake of errors and limits, where none is."""
    return with_copies(program, program.outputs) or None


def _refuse_combinations(engine: Engine, backend: Backend, *, master: str | None, mode: Mode, form: Form) -> None:
    if backend == Backend.SPARK and engine == Engine.REFERENCE:
        raise typer.BadParameter("the reference engine does not run on Spark", param_hint="--engine")
    given = {"--master": master is not None, "--mode": mode != Mode.AUTO, "--format": form != Form.TEXT}
    for option, is_given in given.items():
        if backend == Backend.LOCAL and is_given:
            raise typer.BadParameter("it is for --backend spark", param_hint=option)


def read_inputs(program: Program, folder: Path, progress: Progress) -> dict[str, set[Tuple]]:
    """The facts of a program as its relations hold them: those of tables are looked at, and copies of rows numbered."""
    given: dict[str, set[Tuple]] = {}
    tables = ReadTables(program)
    failed = False
    for transfer in program.transfers_of("input"):
        progress.text = f"reading {transfer.relation}"
        relation = program.relations[transfer.relation]
        try:
            rows = read_rows(transfer, relation, program.types, folder)
            if relation.table is not None:
                rows = tables.let_in(relation.name, rows, read_from(transfer, relation, folder))
            given.setdefault(relation.name, set()).update(rows)
        except FactError as error:
            # Go on, so that what is wrong with the other inputs is said too.
            show(err, str(error))
            failed = True
    if failed:
        raise typer.Exit(1)
    tables.check_references()
    return given | {name: set(rows) for name, rows in tables.copies.items()}


def _read_columns(program: Program, folder: Path) -> dict[str, PlainColumns]:
    """Large inputs that are as plain as can be."""
    inputs = list(program.transfers_of("input"))
    read = [(each, program.relations[each.relation]) for each in inputs]
    once = [
        (each, relation)
        for each, relation in read
        if sum(other is relation for _, other in read) == 1 and not (relation.table and relation.table.checks)
    ]
    if not any(is_large(each, relation, folder) for each, relation in once):
        return {}
    from whence.text_columns import read_columns  # noqa: PLC0415 - brings NumPy

    found = {relation.name: read_columns(each, relation, folder) for each, relation in once}
    return {name: columns for name, columns in found.items() if columns is not None}


def _without_inputs(program: Program, names: Collection[str]) -> Program:
    kept = (each for each in program.transfers if each.kind != "input" or each.relation not in names)
    return replace(program, transfers=tuple(kept))


def _write(
    program: Program,
    views: Mapping[str, Collection[Tuple]],
    session: Session | None,
    folder: Path | None,
    *,
    quiet: bool,
) -> None:
    for transfer in program.transfers:
        relation = program.relations[transfer.relation]
        if transfer.kind == "printsize":
            print_size(transfer, relation, repeated(program, relation.name, views))
        elif transfer.kind == "output":
            path = output_path(transfer, relation, folder)
            # Nothing moves on the terminal while results are printed to it.
            with Progress(err, f"writing {path}", quiet=quiet or path is None):
                is_bag = copies_of(program, relation.name) is not None
                if is_bag or session is None or not _written_as_columns(transfer, relation, session, folder):
                    rows = repeated(program, relation.name, views)
                    write_relation(transfer, relation, program.types, rows, folder)


def _written_as_columns(transfer: Transfer, relation: Relation, session: Session, folder: Path | None) -> bool:
    from whence.text_columns import MANY_ROWS, write_columns  # noqa: PLC0415 - brings NumPy

    view = session.relation(relation.name)
    if len(view) < MANY_ROWS or (columns := view.plain_columns()) is None:
        return False
    return write_columns(transfer, relation, columns, folder)


def _telling(progress: Progress) -> Callable[[str, int, int], None]:
    def tell(stratum: str, number: int, tuples: int) -> None:
        progress.text = f"evaluating {stratum}: round {number}, {tuples:,} tuples"

    return tell


@contextmanager
def reported_errors() -> Iterator[None]:
    """What is wrong with the user's program or facts, as text and exit code."""
    try:
        yield
    except ProgramError as error:
        for each in error.diagnostics:
            show_diagnostic(err, each, error.source)
        show(err, summary_of(error.diagnostics))
        raise typer.Exit(1) from None
    except FactError as error:
        show(err, str(error))
        raise typer.Exit(1) from None
    except (reference.FunctionError, NotInThisSemiring) as error:
        show(err, f"error: {error}")
        raise typer.Exit(1) from None
    except RunawayError as error:
        show(err, f"error: {error}")
        raise typer.Exit(RUNAWAY) from None
    except MissingExtra as error:
        show(err, f"error: {error}")
        raise typer.Exit(2) from None
    except MemoryError:
        show(err, "error: there is not enough memory for this")
        show(err, "  hint: --max-tuples stops a program that derives too much; whence run keeps a large state in parts")
        raise typer.Exit(RUNAWAY) from None


@contextmanager
def shown_warnings(*, quiet: bool) -> Iterator[None]:
    def show_warning(message: Warning | str, *_: object, **__: object) -> None:
        if not quiet:
            show(err, f"warning: {message}")

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = show_warning
        yield
