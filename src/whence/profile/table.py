"""A report as text."""

from __future__ import annotations

from collections.abc import Iterator

from whence.profile.hints import hints_of, percent
from whence.profile.report import DriverCost, LiteralCost, Report, RuleCost

_HINTS = 3


def to_text(report: Report) -> str:
    return "\n".join(_lines(report))


def _lines(report: Report) -> Iterator[str]:
    for hint in hints_of(report)[:_HINTS]:
        yield f"hint: {hint}"
    yield ""
    phases = sorted(report.seconds.items(), key=lambda each: -each[1])
    yield f"time {duration(report.total)}: {', '.join(f'{name} {duration(spent)}' for name, spent in phases)}"
    counts = ((report.epochs, "epoch"), (report.rounds, "round"), (report.derivations, "derivation"))
    yield ", ".join(counted(number, noun) for number, noun in counts)
    if report.rules:
        yield ""
        yield f"{'time':>9}  {'share':>5}  {'derivations':>11}  {'new':>5}  rule"
    for rule in report.rules:
        yield from _rule(rule, report.rule_seconds)
    if report.strata:
        yield ""
        yield f"{'time':>9}  {'rounds':>6}  {'added':>9}  {'gone':>9}  relations evaluated together"
    for each in sorted(report.strata, key=lambda each: -each.seconds):
        anew = f", anew each time: {each.why_anew}" if each.why_anew else ""
        figures = f"{duration(each.seconds):>9}  {each.rounds:>6,}  {each.added:>9,}  {each.gone:>9,}"
        yield f"{figures}  {', '.join(each.relations)}{anew}"
    yield ""
    yield f"{'rows':>11}  {'size':>9}  relation and its indexes"
    for size in sorted(report.relations, key=lambda each: -each.table_bytes):
        if size.rows:
            indexes = "".join(f"; index on {', '.join(names)} {in_bytes(taken)}" for names, taken in size.indexes)
            yield f"{size.rows:>11,}  {in_bytes(size.table_bytes):>9}  {size.name}{indexes}"


def _rule(rule: RuleCost, whole: float) -> Iterator[str]:
    new = percent(rule.new, rule.derivations) if rule.derivations else ""
    yield (
        f"{duration(rule.seconds):>9}  {percent(rule.seconds, whole):>5}  {rule.derivations:>11,}  {new:>5}  "
        f"{rule.name}  {rule.place}"
    )
    yield f"{'':>39}{rule.text}"
    for driver in rule.drivers:
        if driver.rows:
            yield from _driver(driver)


def _driver(driver: DriverCost) -> Iterator[str]:
    at = driver.literal if driver.literal == "from the start" else f"when {driver.literal} changes"
    went = f", {driver.lost:,} rows went" if driver.lost else ""
    yield (
        f"{duration(driver.seconds):>13}  {at}: {counted(driver.rows, 'row')} in {counted(driver.runs, 'batch')}; "
        f"joins {duration(driver.finding)}, tables {duration(driver.storing)}{went}"
    )
    for literal in driver.literals:
        spent = "" if literal.seconds is None else duration(literal.seconds)
        yield f"{spent:>15}  {_literal(literal)}"


def _literal(literal: LiteralCost) -> str:
    rows = "" if literal.rows is None else f"{literal.rows:,} rows"
    if literal.rows is not None and literal.given:
        rows += (
            f", {literal.rows / literal.given:.3g} a look-up"
            if literal.kind == "index"
            else f", {percent(literal.rows, literal.given)}"
            if literal.kind in ("check", "test")
            else ""
        )
    by = {
        "index": f"  by index on {', '.join(literal.columns)} ({literal.held:,} rows, {in_bytes(literal.index_bytes)})",
        "scan": f"  with every row ({literal.held:,})",
        "check": f"  looked up ({literal.held:,} rows)",
    }.get(literal.kind, "")
    return f"{literal.text}{by}  -> {rows}" if rows else f"{literal.text}{by}"


def duration(seconds: float) -> str:
    """
    >>> duration(12.345), duration(0.0123), duration(0.0000123)
    ('12.35 s', '12.3 ms', '0.01 ms')
    """
    if seconds >= 1:
        return f"{seconds:.2f} s"
    return f"{seconds * 1000:.1f} ms" if seconds >= 0.001 else f"{seconds * 1000:.2f} ms"


def counted(number: int, noun: str) -> str:
    """
    >>> counted(1, "row"), counted(2000, "batch")
    ('1 row', '2,000 batches')
    """
    plural = f"{noun}es" if noun == "batch" else f"{noun}s"
    return f"{number:,} {noun if number == 1 else plural}"


def in_bytes(count: int) -> str:
    return f"{count / 1e6:,.1f} MB" if count >= 100_000 else f"{count / 1e3:,.1f} kB"
