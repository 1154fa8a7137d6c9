"""A report as a page of HTML with everything in it: it needs no network and no script."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from html import escape
from importlib.resources import files

from whence.profile.hints import hints_of, percent
from whence.profile.report import DriverCost, Report, RuleCost
from whence.profile.table import counted, duration, in_bytes

_OPEN = 3  # rules whose literals are shown from the start


def to_html(report: Report, title: str = "Profile") -> str:
    return "\n".join(_lines(report, title))


def _lines(report: Report, title: str) -> Iterator[str]:
    style = files("whence.profile").joinpath("page.css").read_text(encoding="utf-8")
    yield '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield f"<title>{escape(title)}</title>\n<style>\n{style}</style>\n</head>\n<body>\n<h1>{escape(title)}</h1>"
    yield '<ol class="hints">' + "".join(f"<li>{escape(hint)}</li>" for hint in hints_of(report)) + "</ol>"
    yield (
        f"<p>{duration(report.total)}, {counted(report.epochs, 'epoch')}, {counted(report.rounds, 'round')}, "
        f"{counted(report.derivations, 'derivation')}</p>"
    )
    yield "<h2>Where the time goes</h2>"
    phases = sorted(report.seconds.items(), key=lambda each: -each[1])
    yield _table(
        ("", "time", "share", ""),
        ((name, duration(spent), percent(spent, report.total), _Bar(spent, report.total)) for name, spent in phases),
    )
    yield "<h2>Rules</h2>"
    for at, rule in enumerate(report.rules):
        yield from _rule(rule, report, is_open=at < _OPEN)
    yield "<h2>Relations evaluated together</h2>"
    yield _table(
        ("", "time", "epochs", "rounds", "added", "gone"),
        (
            (
                ", ".join(each.relations) + (f" — anew each time: {each.why_anew}" if each.why_anew else ""),
                duration(each.seconds),
                f"{each.epochs:,}",
                f"{each.rounds:,}",
                f"{each.added:,}",
                f"{each.gone:,}",
            )
            for each in sorted(report.strata, key=lambda each: -each.seconds)
        ),
    )
    yield "<h2>Relations and their indexes</h2>"
    yield _table(
        ("", "rows", "size", "indexes"),
        (
            (
                each.name,
                f"{each.rows:,}",
                in_bytes(each.table_bytes),
                "; ".join(f"{', '.join(names)} {in_bytes(taken)}" for names, taken in each.indexes),
            )
            for each in sorted(report.relations, key=lambda each: -each.table_bytes)
        ),
    )
    yield "</body>\n</html>"


def _rule(rule: RuleCost, report: Report, *, is_open: bool) -> Iterator[str]:
    share = percent(rule.seconds, report.rule_seconds)
    new = f", {percent(rule.new, rule.derivations)} new" if rule.derivations else ""
    yield f"<details{' open' if is_open else ''}><summary><b>{escape(rule.name)}</b> {duration(rule.seconds)} ({share}), "
    yield f"{rule.derivations:,} derivations{new} <small>{escape(rule.place)}</small><br>"
    yield f"<code>{escape(rule.text)}</code></summary>"
    for driver in rule.drivers:
        if driver.rows:
            yield from _driver(driver)
    yield "</details>"


def _driver(driver: DriverCost) -> Iterator[str]:
    at = (
        "from the start"
        if driver.literal == "from the start"
        else f"when <code>{escape(driver.literal)}</code> changes"
    )
    yield (
        f"<p>{at}: {counted(driver.rows, 'row')} in {counted(driver.runs, 'batch')}; joins {duration(driver.finding)}, "
        f"tables {duration(driver.storing)}</p>"
    )
    yield _table(
        ("literal", "how", "time", "in", "out", "a look-up", "relation", "index"),
        (
            (
                _Code(each.text),
                f"index on {', '.join(each.columns)}" if each.kind == "index" else each.kind,
                "" if each.seconds is None else duration(each.seconds),
                "" if each.given is None else f"{each.given:,}",
                "" if each.rows is None else f"{each.rows:,}",
                "" if each.rows is None or not each.given else f"{each.rows / each.given:.3g}",
                f"{each.held:,}" if each.relation else "",
                in_bytes(each.index_bytes) if each.index_bytes else "",
            )
            for each in driver.literals
        ),
    )


class _Code(str):
    """Text of the program."""

    __slots__ = ()


class _Bar(str):
    """A share as a bar."""

    __slots__ = ()

    def __new__(cls, part: float, whole: float) -> _Bar:
        width = 100 * part / whole if whole else 0
        return super().__new__(cls, f'<span class="bar" style="width:{width:.1f}%"></span>')


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = ["".join(f"<th>{escape(each)}</th>" for each in head), *("".join(map(_cell, row)) for row in rows)]
    return '<div class="wide"><table>' + "".join(f"<tr>{line}</tr>" for line in lines) + "</table></div>"


def _cell(text: str) -> str:
    if isinstance(text, _Bar):
        return f'<td style="width:40%">{text}</td>'
    return f"<td><code>{escape(text)}</code></td>" if isinstance(text, _Code) else f"<td>{escape(text)}</td>"
