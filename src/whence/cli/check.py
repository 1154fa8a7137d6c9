from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated

import typer

from whence.cli.programs import ConfinedOption, FunctionsOption, ProgramArgument, load_program
from whence.cli.terminal import counted, out, show, show_diagnostic, summary_of
from whence.lang import ProgramError
from whence.lang.diagnostics import Diagnostic, to_json
from whence.lang.program import Program
from whence.lang.source import Source


def check(
    program: ProgramArgument,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object, for editors and scripts.")] = False,
    functions: FunctionsOption = None,
    confined: ConfinedOption = False,
) -> None:
    """Report everything that is wrong with a program.

    The exit code is 1 if there are errors, 0 if there are none or only warnings, 2 if the program cannot be read.
    """
    try:
        checked = load_program(program, functions, confined=confined)
    except ProgramError as error:
        _report(error.source, error.diagnostics, summary_of(error.diagnostics), as_json=as_json)
        raise typer.Exit(1) from None
    _report(checked.source, checked.warnings, _summary(checked), as_json=as_json)


def _report(source: Source, diagnostics: Sequence[Diagnostic], summary: str, *, as_json: bool) -> None:
    if as_json:
        ok = all(each.severity != "error" for each in diagnostics)
        found = [to_json(each, source) for each in diagnostics]
        typer.echo(json.dumps({"ok": ok, "diagnostics": found}, ensure_ascii=False, indent=2))
        return
    for each in diagnostics:
        show_diagnostic(out, each, source)
    show(out, summary)


def _summary(program: Program) -> str:
    parts = [
        counted(len(program.relations), "relation"),
        counted(sum(not rule.is_fact for rule in program.rules) + len(program.subsumptions), "rule"),
        counted(len(program.strata), "stratum"),
    ]
    if program.warnings:
        parts.append(counted(len(program.warnings), "warning"))
    return f"ok: {', '.join(parts)}"
