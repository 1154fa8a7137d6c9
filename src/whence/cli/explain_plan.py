from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from whence.cli.evaluate import read_inputs, reported_errors, wanted_of
from whence.cli.functions import load_functions
from whence.cli.profiling import ProfileToOption, tell_profile, wanted_profile
from whence.cli.programs import ConfinedOption, FunctionsOption, SimplifyOption, load_program
from whence.cli.progress import Progress
from whence.cli.questions import SubjectArgument, open_session
from whence.cli.terminal import err, out, show
from whence.lang.program import Program, output_names
from whence.pipeline.parts.open import read_state
from whence.plan import compile_evaluation, compile_plan
from whence.plan.describe import describe_plan
from whence.plan.describe_parts import describe_partitioning
from whence.plan.describe_places import describe_places
from whence.plan.simplify import simplify as without_superfluous

if TYPE_CHECKING:
    from whence.engine.profile import Profile


def explain_plan(
    program: SubjectArgument,
    *,
    live: Annotated[
        bool,
        typer.Option(
            "--live", help="Show the join orders that suit the data, what is expected of them and what they find."
        ),
    ] = False,
    sensors: Annotated[
        str | None,
        typer.Option(metavar="FIELD", help="Show what the nodes of a field of sensors run instead, as in grid:5x8."),
    ] = None,
    functions: FunctionsOption = None,
    confined: ConfinedOption = False,
    simplify: SimplifyOption = False,
    profile: Annotated[
        bool, typer.Option("--profile", help="Evaluate it, and say what each rule and literal costs.")
    ] = False,
    facts: Annotated[
        Path,
        typer.Option(
            "-F", "--fact-dir", metavar="DIR", help="Where the files of .input are, for --live and --profile."
        ),
    ] = Path(),
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object: the profile, or with --live the orders.")
    ] = False,
    profile_to: ProfileToOption = None,
) -> None:
    """Show how a program's views are kept up to date.

    Strata come in the order they are evaluated. For each rule there is one plan for each literal that can change: the joins and
    tests that find what follows, with the indexes they use. $0, $1, … are the values of variables.

    The end tells whether the state of a run can be kept in parts, by which columns, and what parts ship each other; and, where
    arguments marked @ say which node holds a tuple, what each node runs and what is shipped where. With --sensors it is where
    tuples live on a field, where they are stored and look for partners, and by when results are final.

    With --profile it is what evaluating the program on the facts of -F took: the hint that matters first, then time,
    derivations and sizes of joins and indexes for each rule and literal.

    With --live it is about data: the facts of -F, or the state of a run, which tells itself if it has --adaptive. For each plan
    with a choice there are its joins, with how many rows of each are expected for one that changes, and how many a sample finds;
    at the end the last switches to other orders, and what had changed most. --json has the same for programs.
    """
    costs = wanted_profile(profile or (as_json and not live), profile_to)
    with reported_errors():
        if live:
            _explain_live(program, functions, facts, confined=confined, as_json=as_json)
            return
        if program.is_dir():
            loaded = read_state(program, load_functions(functions)).program
        else:
            loaded = load_program(program, functions, confined=confined)
        if sensors is not None:
            from whence.cli.field import explain_sensors, reported_fields  # noqa: PLC0415 - only fields need it

            with reported_fields():
                typer.echo("\n".join(explain_sensors(loaded, sensors)))
            return
        if simplify:
            loaded, left_out = without_superfluous(loaded)
            lines = left_out or ("nothing is superfluous",)
            typer.echo("\n".join([*(f"simplified for sets: {each}" for each in lines), ""]))
        if costs is not None:
            _tell_costs(loaded, facts, costs, profile_to, as_json=as_json, title=f"whence explain-plan {program}")
            return
        typer.echo(describe_plan(compile_plan(loaded, wanted_of(loaded)), compile_evaluation(loaded)))
        typer.echo("\n".join([*describe_partitioning(loaded, output_names(loaded)), *describe_places(loaded)]))


def _tell_costs(program: Program, facts: Path, costs: Profile, path: Path | None, *, as_json: bool, title: str) -> None:
    # Few ask for it, and it brings the engine.
    from whence.profile import report, to_json, to_text  # noqa: PLC0415
    from whence.session import evaluated  # noqa: PLC0415

    with Progress(err, "reading", quiet=False) as progress:
        with costs.waiting("reading"):
            given = read_inputs(program, facts, progress)
        progress.text = "evaluating"
        session = evaluated(program, given, wanted=wanted_of(program), profile=costs)
    if path is not None:
        tell_profile(costs, session, path, title=title)
    elif as_json:
        typer.echo(json.dumps(to_json(report(costs, session)), indent=2))
    else:
        show(out, to_text(report(costs, session)))


def _explain_live(path: Path, functions: Path | None, facts: Path, *, confined: bool, as_json: bool) -> None:
    # Nobody else needs it.
    from whence.optimizer.adaptive import AdaptiveOrders  # noqa: PLC0415
    from whence.optimizer.live import live_lines, live_report, published_report  # noqa: PLC0415

    report = published_report(path) if path.is_dir() else None
    if report is None:
        report = live_report(AdaptiveOrders(open_session(path, functions, facts, confined=confined)))
    elif not as_json:
        written = datetime.fromtimestamp(report["written"]).astimezone().isoformat(timespec="seconds")
        typer.echo(f"as process {report['process']} told {written}")
    typer.echo(json.dumps(report, indent=2) if as_json else "\n".join(live_lines(report)))
