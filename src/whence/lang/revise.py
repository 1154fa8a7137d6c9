"""Programs with a rule more or less: checked as a whole again, so that they are what `load` would have made of them.

Rules that stay keep their names and their places in the text.
"""

from __future__ import annotations

from dataclasses import replace
from difflib import get_close_matches

from whence.lang import tree
from whence.lang.diagnostics import Diagnostics
from whence.lang.load import check
from whence.lang.parser import parse
from whence.lang.preprocess import preprocess
from whence.lang.program import Program, Rule, Subsumption
from whence.lang.source import Source


def add_rules(program: Program, text: str, *, name: str = "<added>") -> Program:
    """The program with the rules, facts and declarations of a text behind its own. Raises `ProgramError`.

    >>> from whence.lang import load
    >>> [rule.name for rule in add_rules(load("p(1). .output p"), "p(x + 1) :- p(x), x < 3.").rules]
    ['p#1', 'p#2']
    """
    added, problems = preprocess(text, name, None)
    Diagnostics(added, problems).raise_if_errors()
    before = program.source
    start = len(before.text) + 1
    segments = tuple(replace(segment, start=segment.start + start) for segment in added.segments)
    # Blanks in front put the new statements behind the old ones, without reading those again.
    parsed = parse(Source(" " * start + added.text, segments))
    source = Source(f"{before.text}\n{added.text}", before.segments + segments)
    module = tree.Module(program.module.statements + parsed.module.statements)
    found = Diagnostics(source, list(parsed.errors))
    return check(module, source, program.functions, found, parsed.lost, dropped=program.dropped)


def drop_rule(program: Program, name: str) -> Program:
    """The program without a rule; the name of a rule with several heads or alternatives stands for all of them.

    Raises `ProgramError`, for what no longer has a meaning without the rule, and ValueError if there is no such rule.
    """
    rules: list[Rule | Subsumption] = [*program.rules, *program.subsumptions]
    gone = {(rule.name, rule.span) for rule in rules if rule.name == name or rule.name.startswith(f"{name}/")}
    if not gone:
        close = get_close_matches(name, [rule.name for rule in rules], n=1)
        hint = f"; did you mean {close[0]}?" if close else ""
        raise ValueError(f"there is no rule {name}{hint}")
    found = Diagnostics(program.source, [])
    return check(program.module, program.source, program.functions, found, dropped=program.dropped | gone)
