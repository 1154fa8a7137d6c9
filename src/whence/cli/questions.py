"""What the commands that answer questions share: a session of a program and its facts, and facts as arguments."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, NoReturn, TypeVar

import typer

from whence import session
from whence.cli.evaluate import read_inputs, reported_errors, shown_warnings
from whence.cli.functions import load_functions
from whence.cli.programs import existing_file, load_program
from whence.cli.progress import Progress
from whence.cli.terminal import err, show
from whence.lang.program import Program
from whence.lang.types import Tuple
from whence.pipeline.store import Store
from whence.plan.record import RecordedProgram
from whence.provenance.annotations import Annotations
from whence.provenance.base import free_facts, parse_fact
from whence.provenance.derive import CannotExplain
from whence.provenance.expand import Bounds
from whence.provenance.graph import Fact
from whence.provenance.live import LiveState
from whence.provenance.show import show_fact
from whence.semiring import NotInThisSemiring


def _program_or_state(path: Path) -> Path:
    return path if path.is_dir() else existing_file(path)


SubjectArgument = Annotated[
    Path,
    typer.Argument(
        metavar="PROGRAM",
        help="A Datalog program (.dl) or a SQL file (.sql); or the folder that a run keeps its state in (whence run --state).",
        callback=_program_or_state,
    ),
]
FactArgument = Annotated[str, typer.Argument(metavar="FACT", help="""A fact, such as 'reach("a", "f")'.""")]
FactsOption = Annotated[Path, typer.Option("-F", "--fact-dir", metavar="DIR", help="Where the files of .input are.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
DepthOption = Annotated[
    int | None,
    typer.Option("--depth", min=1, metavar="N", help="Look no more steps back.", rich_help_panel="Bounds"),
]
MaxFactsOption = Annotated[
    int, typer.Option(min=1, metavar="N", help="Look at no more facts.", rich_help_panel="Bounds")
]
SecondsOption = Annotated[
    float | None, typer.Option("--timeout", min=0, metavar="SECONDS", help="Look no longer.", rich_help_panel="Bounds")
]
MAX_FACTS = 100_000
V = TypeVar("V")


@contextmanager
def answering() -> Iterator[None]:
    """What is wrong with a question, as text and exit code."""
    with reported_errors(), shown_warnings(quiet=True):
        try:
            yield
        except (CannotExplain, NotInThisSemiring) as error:
            show(err, f"error: {error}")
            raise typer.Exit(1) from None


def read_program(path: Path, functions: Path | None, facts: Path) -> tuple[Program, dict[str, set[Tuple]]]:
    """The program and all its base facts, those that it states itself among them; of a state, those of its last epoch."""
    with Progress(err, "reading", quiet=False) as progress:
        if path.is_dir():
            store = Store.read(path, load_functions(functions))
            written = store.program.plain if isinstance(store.program, RecordedProgram) else store.program
            program, stated = free_facts(session.lasting(written))
            given = store.recover().base.rows
        else:
            program, stated = free_facts(session.lasting(load_program(path, functions)))
            given = read_inputs(program, facts, progress)
    for name, rows in stated.items():
        given.setdefault(name, set()).update(rows)
    return program, given


def open_session(path: Path, functions: Path | None, facts: Path) -> session.Session:
    program, given = read_program(path, functions, facts)
    with Progress(err, "evaluating", quiet=False):
        return session.Session(program, facts=given)


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raises TimeoutError, wherever the command is, when the time is over."""

    def stop(*_: object) -> NoReturn:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def fact_argument(text: str, program: Program, name: str = "FACT") -> Fact:
    try:
        return parse_fact(text, program)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint=name) from None


def base_fact_argument(text: str, program: Program, name: str) -> Fact:
    fact = fact_argument(text, program, name)
    if fact.relation not in program.base_relations:
        base = ", ".join(program.base_relations)
        raise typer.BadParameter(f"{fact.relation} is derived by rules; base relations are {base}", param_hint=name)
    return fact


def bounds_of(depth: int | None, max_facts: int, seconds: float | None) -> Bounds:
    return Bounds(depth, max_facts, seconds)


def annotations_argument(
    specs: Iterable[str], asked: session.Session, parse: Callable[[str], V], name: str
) -> Annotations[V]:
    try:
        given = Annotations(specs, asked.program, parse)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint=name) from None
    state = LiveState(asked)
    for fact in given.facts:
        if not state.holds(*fact):
            raise typer.BadParameter(f"{show_fact(fact)} is not among the base facts", param_hint=name)
    return given
