"""`whence equivalent`: whether two queries give the same, whatever the data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from whence.cli.evaluate import reported_errors
from whence.cli.functions import load_functions
from whence.cli.programs import FunctionsOption
from whence.cli.reasoning import SemiringOption, mapping_lines, mapping_to_json
from whence.cli.terminal import err, out, show
from whence.lang import load_file
from whence.lang.program import output_names
from whence.reasoning import Answer, NotConjunctive, Query, Verdict, query_of
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

    The exit code is 0 for yes, 1 for no, 3 for not decided, 2 if the question cannot be asked.
    """
    with reported_errors():
        try:
            one, other = _query(left, functions), _query(right, functions)
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


def _query(text: str, functions: Path | None) -> Query:
    path, relation = Path(text), ""
    if not path.is_file():
        name, _, relation = text.rpartition(":")
        path = Path(name)
    if not path.is_file() or (not relation and str(path) != text):
        raise typer.BadParameter(f"{text} is neither a program nor PROGRAM:RELATION")
    program = load_file(path, functions=load_functions(functions))
    if not relation:
        outputs = output_names(program)
        if len(outputs) != 1:
            raise typer.BadParameter(f"{text} has {len(outputs)} outputs; name one, as in {text}:{(*outputs, 'R')[0]}")
        relation = outputs[0]
    return query_of(program, relation)


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
