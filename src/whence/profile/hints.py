"""What to change first, by what it would save at most. A hint names the figure that it comes from."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest
from typing import NamedTuple

from whence.profile.report import DriverCost, LiteralCost, Report, RuleCost

_MANY = 1_000  # derivations, or rows of a join: less is not worth a thought
_SHARE = 0.1  # of the time
_FEW_NEW = 0.5  # of the derivations of a rule
_FEW_KEPT = 0.1  # of the rows that a literal finds
_ROUNDS, _THIN = 64, 32  # rounds of a recursion, and the rows that each of them brings, on average


class Hint(NamedTuple):
    """`seconds` is the time that it is about."""

    seconds: float
    text: str


def hints_of(report: Report) -> list[str]:
    """The one about most of the time first; there is always one."""
    total = report.total or 1.0
    found = [hint for hint in _hints(report) if hint.seconds >= _SHARE * total]
    if found:
        return [hint.text for hint in sorted(found, key=lambda hint: -hint.seconds)]
    if not report.rules:
        return ["no rule was applied"]
    first = report.rules[0]
    phase = max(report.seconds, key=lambda name: report.seconds[name])
    return [
        f"nothing stands out: of the rules, {first.name} takes most ({percent(first.seconds, total)} of the time); "
        f"of the phases, {phase} ({percent(report.seconds[phase], total)})"
    ]


def percent(part: float, whole: float) -> str:
    """
    >>> percent(1, 3), percent(0.001, 1), percent(0, 0)
    ('33 %', '0.1 %', '0 %')
    """
    share = 100 * part / whole if whole else 0.0
    return f"{share:.1f} %" if 0 < share < 1 else f"{share:.0f} %"


def _hints(report: Report) -> Iterator[Hint]:
    for rule in report.rules:
        yield from _few_new(rule, report)
        for driver in rule.drivers:
            yield from _joins(rule, driver)
    yield from _strata(report)
    yield from _phases(report)


def _few_new(rule: RuleCost, report: Report) -> Iterator[Hint]:
    made = rule.derivations
    if made < _MANY or rule.lost or rule.new >= _FEW_NEW * made:
        return
    if rule.recursive_literals > 1:
        advice = f"it joins {rule.head} with itself; a rule that goes on from it by what it starts from meets each row less often"
    elif rule.recursive:
        advice = (
            f"its rows are reached in many ways; if only some are asked for, declare {rule.head} magic, so that they are derived "
            "on demand; if only the best of them matter, aggregate inside the recursion"
        )
    else:
        advice = "columns that its head leaves out make the same row again; a view without them, joined instead, makes it once"
    said = f"rule {rule.name} makes {percent(made, report.derivations)} of the derivations, of which"
    yield Hint(rule.seconds, f"{said} {percent(rule.new, made)} are new: {advice}")


def _joins(rule: RuleCost, driver: DriverCost) -> Iterator[Hint]:
    for literal, following in zip_longest(driver.literals, driver.literals[1:]):
        rows = literal.rows or 0
        if rows < _MANY:
            continue
        if literal.kind == "scan" and literal.given:
            said = f"rule {rule.name} joins every row of {literal.relation} ({literal.held:,} of them) {literal.given:,} times"
            yield Hint(
                driver.seconds,
                f"{said}: no variable of {literal.text} is known there; share one with the literals before it",
            )
        elif following is not None and following.rows is not None and following.rows < _FEW_KEPT * rows:
            yield Hint(driver.seconds, _kept_few(rule, driver, literal, following))


def _kept_few(rule: RuleCost, driver: DriverCost, literal: LiteralCost, following: LiteralCost) -> str:
    said = (
        f"of the {literal.rows or 0:,} rows that {literal.text} finds in rule {rule.name} when {driver.literal} changes, "
        f"{following.text} keeps {percent(following.rows or 0, literal.rows or 0)}"
    )
    if following.kind in ("index", "scan"):
        return (
            f"{said}: the other order of joins is cheaper; whence run --adaptive, or a join order of your own, has it"
        )
    return f"{said}: a view that holds only the rows that pass, joined instead, is looked up in less"


def _strata(report: Report) -> Iterator[Hint]:
    for stratum in report.strata:
        names = ", ".join(stratum.relations)
        if stratum.why_anew:
            yield Hint(
                stratum.seconds,
                f"{names}: evaluated anew {stratum.epochs:,} times, since a change of its inputs cannot be followed "
                f"({stratum.why_anew}); rules without that are maintained instead",
            )
        elif stratum.recursive and stratum.rounds > _ROUNDS and stratum.added < _THIN * stratum.rounds:
            yield Hint(
                stratum.seconds,
                f"{names}: {stratum.rounds:,} rounds of {stratum.added / stratum.rounds:.0f} rows each, one for each step of the "
                "longest chain; a rule that joins the view with itself needs fewer",
            )


def _phases(report: Report) -> Iterator[Hint]:
    known = {
        "collect": "taking rows in from Python; frames and files that speak Arrow, or fewer and larger epochs, take less",
        "decode": "handing rows out as Python values; ask for fewer relations (.output), or for Arrow tables",
        "aggregate": "aggregating groups again; groups of fewer rows, or an aggregate of what was aggregated before, take less",
        "reading": "reading facts; Parquet and Arrow files are read faster than text",
        "writing": "writing what is asked for; fewer .output relations take less",
        "updates": "waiting for updates, and reading them",
        "sinks": "handing changes out; a file takes less than a terminal",
        "state": "making epochs durable; larger epochs share what each of them takes (--epoch-size)",
    }
    for phase, about in known.items():
        seconds = report.seconds.get(phase, 0.0)
        if seconds > 0.5 * report.total:
            yield Hint(seconds, f"{percent(seconds, report.total)} of the time goes into {about}")
