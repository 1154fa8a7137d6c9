from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from whence.cli.programs import ConfinedOption, FunctionsOption, ProgramArgument, load_program
from whence.cli.reasoning import SemiringOption, mapping_lines, mapping_to_json
from whence.cli.terminal import counted, out, show, show_diagnostic, summary_of
from whence.lang import ProgramError
from whence.lang.diagnostics import Diagnostic, to_json
from whence.lang.program import Program
from whence.lang.source import Source
from whence.reasoning import Superfluous, redundant_rules
from whence.semiring import NotInThisSemiring


def check(
    program: ProgramArgument,
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object, for editors and scripts.")] = False,
    functions: FunctionsOption = None,
    confined: ConfinedOption = False,
    redundant: Annotated[
        bool, typer.Option("--redundant", help="Name the rules that others make superfluous, too.")
    ] = False,
    semiring: SemiringOption = "boolean",
) -> None:
    """Report everything that is wrong with a program.

    The exit code is 1 if there are errors, 0 if there are none or only warnings, 2 if the program cannot be read.
    """
    try:
        checked = load_program(program, functions, confined=confined)
    except ProgramError as error:
        _report(error.source, error.diagnostics, summary_of(error.diagnostics), as_json=as_json)
        raise typer.Exit(1) from None
    try:
        superfluous = redundant_rules(checked, semiring) if redundant else None
    except NotInThisSemiring as error:
        raise typer.BadParameter(str(error), param_hint="--semiring") from None
    _report(checked.source, checked.warnings, _summary(checked), as_json=as_json, superfluous=superfluous)


def _report(
    source: Source,
    diagnostics: Sequence[Diagnostic],
    summary: str,
    *,
    as_json: bool,
    superfluous: list[Superfluous] | None = None,
) -> None:
    if as_json:
        ok = all(each.severity != "error" for each in diagnostics)
        found = [to_json(each, source) for each in diagnostics]
        answer: dict[str, Any] = {"ok": ok, "diagnostics": found}
        if superfluous is not None:
            answer["redundant"] = [
                {
                    "rule": each.rule.name,
                    "line": _line(each, source),
                    "because": list(map(mapping_to_json, each.mappings)),
                }
                for each in superfluous
            ]
        typer.echo(json.dumps(answer, ensure_ascii=False, indent=2))
        return
    for each in diagnostics:
        show_diagnostic(out, each, source)
    for one in superfluous or ():
        why = "others make it superfluous" if one.mappings else "it derives nothing"
        show(out, f"{source.place(one.rule.span).file.name}:{_line(one, source)}: rule {one.rule.name} can go: {why}")
        for line in mapping_lines(one.mappings):
            show(out, line)
    show(out, summary if superfluous is None else f"{summary}, {counted(len(superfluous), 'redundant rule')}")


def _line(superfluous: Superfluous, source: Source) -> int:
    return source.place(superfluous.rule.span).line


def _summary(program: Program) -> str:
    parts = [
        counted(len(program.relations), "relation"),
        counted(sum(not rule.is_fact for rule in program.rules) + len(program.subsumptions), "rule"),
        counted(len(program.strata), "stratum"),
    ]
    if program.warnings:
        parts.append(counted(len(program.warnings), "warning"))
    return f"ok: {', '.join(parts)}"
