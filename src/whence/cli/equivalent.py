"""`whence equivalent`: whether two queries give the same, whatever the data."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from whence.cli.evaluate import reported_errors
from whence.cli.functions import load_functions
from whence.cli.programs import FunctionsOption
from whence.cli.reasoning import SemiringOption, mapping_lines, mapping_to_json, named_query
from whence.cli.terminal import err, out, show
from whence.reasoning import Answer, NotConjunctive, Query, Verdict
from whence.reasoning import contained as is_contained
from whence.reasoning import equivalent as is_equivalent
from whence.semiring import SEMIRINGS, Semiring
from whence.semiring.tokens import show_token

UNDECIDED = 3


def equivalent(
    left: Annotated[
        str, typer.Argument(metavar="A", help="A relation as PROGRAM:RELATION, or a program with one output.")
    ],
    right: Annotated[str, typer.Argument(metavar="B", help="What to compare it with.")],
    *,
    semiring: SemiringOption = "boolean",
    contained: Annotated[
        bool, typer.Option("--contained", help="Ask whether B has at least what A has, not whether they are the same.")
    ] = False,
    functions: FunctionsOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Say whether two queries give the same, whatever the data, in a semiring.

    A minus before a rule takes away what it derives, which has a meaning in integer and integer-polynomial. The exit code is 0
    for yes, 1 for no, 3 for not decided, 2 if the question cannot be asked.
    """
    with reported_errors():
        try:
            functors = load_functions(functions)
            one, other = named_query(left, functors), named_query(right, functors)
            answer = (is_contained if contained else is_equivalent)(one, other, semiring)
        except NotConjunctive as error:
            show(err, f"error: {error}")
            raise typer.Exit(2) from None
    if as_json:
        typer.echo(json.dumps(_to_json(answer, [one, other], SEMIRINGS[semiring]), ensure_ascii=False, indent=2))
    else:
        for line in _lines(answer, [one, other], SEMIRINGS[semiring]):
            show(out, line)
    codes = {Verdict.YES: 0, Verdict.NO: 1, Verdict.UNDECIDED: UNDECIDED}
    raise typer.Exit(codes[answer.verdict])


def _lines(answer: Answer, queries: list[Query], semiring: Semiring[Any]) -> list[str]:
    lines = [f"{answer.verdict}: {answer.reason}", *mapping_lines(answer.mappings)]
    example = answer.counterexample
    if example is not None:
        lines.append("with" if example.facts else "with no facts at all")
        lines += [f"  {show_token(fact)}  {semiring.format(value)}" for fact, value in example.facts.items()]
        for query, value in zip(queries, (example.left, example.right), strict=True):
            where = query.program.source.place(query.program.relations[query.relation].span).file.name
            shown = "not there" if value == semiring.zero else semiring.format(value)
            lines.append(f"{where}: {show_token((query.relation, example.row))} is {shown}")
    return lines


def _to_json(answer: Answer, queries: list[Query], semiring: Semiring[Any]) -> dict[str, Any]:
    found: dict[str, Any] = {"answer": str(answer.verdict), "semiring": semiring.name, "reason": answer.reason}
    found["mappings"] = [mapping_to_json(each) for each in answer.mappings]
    example = answer.counterexample
    if example is not None:
        found["counterexample"] = {
            "facts": [
                {"relation": name, "row": row, "annotation": semiring.format(value)}
                for (name, row), value in example.facts.items()
            ],
            "row": example.row,
            "annotations": [
                {"relation": query.relation, "annotation": semiring.format(value)}
                for query, value in zip(queries, (example.left, example.right), strict=True)
            ],
        }
    return found
