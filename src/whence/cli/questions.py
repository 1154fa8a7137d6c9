"""What the commands that answer questions share: a session of a program and its facts, and facts as arguments."""

from __future__ import annotations

import gc
import json
import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from whence import session
from whence.cli import completing
from whence.cli.evaluate import read_inputs, reported_errors, shown_warnings
from whence.cli.functions import load_functions
from whence.cli.mistakes import unknown
from whence.cli.programs import existing_file, load_program
from whence.cli.progress import Progress
from whence.cli.terminal import err, show
from whence.io.confined import refuse_files_outside
from whence.io.json_text import write_json
from whence.io.order import sort_rows
from whence.lang.program import Program, lasting
from whence.lang.tables import taking_updates
from whence.lang.types import Tuple
from whence.pipeline.parts.open import read_state
from whence.pipeline.parts.store import PartedStore
from whence.plan.partition import Partitioning
from whence.plan.record import RecordedProgram
from whence.provenance.annotations import Annotations
from whence.provenance.base import free_facts, parse_fact
from whence.provenance.derivations import CannotExplain, Derivations, LiveDerivations
from whence.provenance.derive import Deriver
from whence.provenance.expand import Bounds
from whence.provenance.graph import Fact
from whence.provenance.matching import FactPattern, parse_pattern
from whence.provenance.parted import PartedDerivations
from whence.provenance.show import show_fact
from whence.provenance.to_json import JsonObject
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
FactArgument = Annotated[
    str,
    typer.Argument(
        metavar="FACT",
        autocompletion=completing.facts,
        help="""A fact, such as 'reach("a", "f")'; _ and variables stand for any value.""",
    ),
]
FactsOption = Annotated[Path, typer.Option("-F", "--fact-dir", metavar="DIR", help="Where the files of .input are.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
MostOption = Annotated[int, typer.Option("-n", min=1, metavar="N", help="Of the facts that fit a pattern, show N.")]
MOST = 3
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
_LISTED = 5  # of the facts that fit
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


def open_subject(path: Path, functions: Path | None, facts: Path, *, confined: bool) -> LiveDerivations:
    """Whom to ask about a program and its facts, or about the last epoch of a state."""
    if path.is_dir():
        store = read_state(path, load_functions(functions))
        if isinstance(store, PartedStore) and not store.manifest.ships:
            return _parted(store)
    return Deriver(open_session(path, functions, facts, confined=confined))


def open_session(path: Path, functions: Path | None, facts: Path, *, confined: bool) -> session.Session:
    """A session of all base facts, of which those that the program states itself can be tried out like the others."""
    with Progress(err, "reading", quiet=False) as progress:
        given: dict[str, set[Tuple]] = {}
        if path.is_dir():
            store = read_state(path, load_functions(functions))
            program, stated = _as_written(store.program)
            for piece in store.pieces():
                for name, rows in piece.base.items():
                    given.setdefault(name, set()).update(rows)
        else:
            loaded = load_program(path, functions, confined=confined)
            if confined:
                refuse_files_outside(loaded, facts, None)
            program, stated = _as_written(loaded)
            given = read_inputs(program, facts, progress)
    for name, own in stated.items():
        given.setdefault(name, set()).update(own)
    with Progress(err, "evaluating", quiet=False):
        return session.Session(program, facts=given)


def _as_written(program: Program) -> tuple[Program, dict[str, list[Tuple]]]:
    """The program without tables of derivations and without what makes facts go by themselves, and the facts that it states."""
    return free_facts(lasting(program.plain if isinstance(program, RecordedProgram) else program))


def _parted(store: PartedStore) -> PartedDerivations:
    """A question is answered by the part that the fact belongs to: only that one is evaluated."""
    program, stated = _as_written(store.program)
    wanted = [name for name in store.outputs if name in program.relations]
    how = Partitioning.by(program, wanted, store.manifest.columns)

    def base_of(part: int) -> dict[str, set[Tuple]]:
        with Progress(err, f"reading part {part}", quiet=False):
            rows = store.base_of(part).rows
        given = {name: set(each) for name, each in rows.items() if name in how.program.relations}
        for name, each in stated.items():
            own = (row for row in each if how.part(name, row, store.parts) in (None, part))
            given.setdefault(name, set()).update(own)
        return given

    return PartedDerivations(how, store.parts, base_of)


_SOON, _AGAIN = 0.01, 1.0  # seconds


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raises TimeoutError, wherever the command is, when the time is over."""
    is_collecting = False

    def begin(phase: str, _: object) -> None:
        nonlocal is_collecting
        is_collecting = is_collecting or phase == "start"

    def end(phase: str, _: object) -> None:
        nonlocal is_collecting
        is_collecting = is_collecting and phase == "start"

    def stop(*_: object) -> None:
        # What is raised in a finalizer is lost. The garbage collector calls most of them; after any others, it comes again.
        if not is_collecting:
            raise TimeoutError
        signal.setitimer(signal.ITIMER_REAL, _SOON, _AGAIN)

    before = signal.signal(signal.SIGALRM, stop)
    gc.callbacks.insert(0, begin)
    gc.callbacks.append(end)
    signal.setitimer(signal.ITIMER_REAL, seconds, _AGAIN)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        gc.callbacks.remove(begin)
        gc.callbacks.remove(end)


def fact_argument(text: str, program: Program, name: str = "FACT") -> Fact:
    """A fact with all its values, there or not."""
    try:
        return parse_fact(text, program)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint=name) from None


def facts_argument(text: str, subject: LiveDerivations, name: str = "FACT") -> list[Fact]:
    """A fact, or all that are there and fit a pattern; those in the order in which they are written to files."""
    try:
        asked = parse_pattern(text, subject.program)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint=name) from None
    return facts_that_fit(asked, text, subject)


def facts_that_fit(asked: FactPattern | Fact, text: str, subject: LiveDerivations) -> list[Fact]:
    """Raises CannotExplain if there are none."""
    if isinstance(asked, Fact):
        return [asked]
    rows = [fact.tuple for fact in subject.matching(asked)]
    if not rows:
        words = [each for each in asked.known.values() if isinstance(each, str) and f'"{each}"' not in text]
        hint = f"; {words[0]} is taken for a text there, and _{words[0]} for a variable" if words else ""
        raise CannotExplain(f"no fact fits {text}{hint}")
    kinds = [each.kind for each in subject.program.relations[asked.relation].fields]
    return [Fact(asked.relation, row) for row in sort_rows(rows, kinds)]


@dataclass(frozen=True)
class Asked:
    """The facts that a question is about; `more` fit its pattern, if it is one."""

    text: str
    facts: list[Fact]
    more: int
    is_pattern: bool

    def print_json(self, answers: Iterable[JsonObject]) -> None:
        """One object about a fact, and one with all of them about a pattern."""
        listed = list(answers)
        print_json({"answers": listed, "more": self.more} if self.is_pattern else listed[0])

    def tell_more(self) -> None:
        if self.more:
            show(err, f"{self.more:,} more fit {self.text}; -n shows more of them, values for _ fewer")


def asked_argument(text: str, subject: LiveDerivations, most: int) -> Asked:
    """What a question is about: a fact, or the first of those that fit a pattern."""
    found = facts_argument(text, subject)
    is_pattern = not isinstance(parse_pattern(text, subject.program), Fact)
    return Asked(text, found[:most], max(0, len(found) - most), is_pattern)


def one_fact_argument(text: str, subject: LiveDerivations) -> Fact:
    """A fact, or the only one that fits a pattern."""
    found = facts_argument(text, subject)
    if len(found) == 1:
        return found[0]
    listed = "".join(f"\n  {show_fact(fact)}" for fact in found[:_LISTED])
    more = f"\n  and {len(found) - _LISTED:,} more" if len(found) > _LISTED else ""
    raise CannotExplain(f"{len(found):,} facts fit {text}; ask about one of them:{listed}{more}")


def base_fact_argument(text: str, program: Program, name: str) -> Fact:
    fact = fact_argument(text, program, name)
    _refuse_derived(fact.relation, program, name)
    return fact


def base_facts_argument(text: str, subject: LiveDerivations, name: str) -> list[Fact]:
    """A base fact, or all that fit a pattern."""
    found = facts_argument(text, subject, name)
    _refuse_derived(found[0].relation, subject.program, name)
    return found


def _refuse_derived(relation: str, program: Program, name: str) -> None:
    if relation not in program.base_relations:
        base = ", ".join(taking_updates(program))
        raise typer.BadParameter(f"{relation} is derived by rules; base relations are {base}", param_hint=name)


def refuse_unknown_base(name: str, program: Program, option: str) -> None:
    if name not in program.base_relations:
        raise unknown("base relation", name, taking_updates(program), option)


def bounds_of(depth: int | None, max_facts: int, seconds: float | None) -> Bounds:
    return Bounds(depth, max_facts, seconds)


def annotations_argument(
    specs: Iterable[str], subject: Derivations, parse: Callable[[str], V], name: str
) -> Annotations[V]:
    try:
        given = Annotations(specs, subject.program, parse)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint=name) from None
    for fact in given.facts:
        if not subject.holds(fact):
            raise typer.BadParameter(f"{show_fact(fact)} is not among the base facts", param_hint=name)
    return given


def print_json(answer: JsonObject) -> None:
    try:
        text = json.dumps(answer, ensure_ascii=False, indent=2)
    except RecursionError:
        text = write_json(answer)  # type: ignore[arg-type]
    typer.echo(text)
