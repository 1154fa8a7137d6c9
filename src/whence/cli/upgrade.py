"""`whence run --upgrade`: the state of an earlier version of the program becomes the program's."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from whence.cli.terminal import err, out, show
from whence.lang.program import Program
from whence.pipeline import upgrade as states

UpgradeOption = Annotated[
    bool, typer.Option("--upgrade", help="If the program has changed since the state was made, bring the state over.")
]
DryRunOption = Annotated[
    bool, typer.Option("--dry-run", help="With --upgrade: tell what it would change, and write nothing.")
]
DefaultOption = Annotated[
    list[str] | None,
    typer.Option(metavar="R.C=VALUE", help="With --upgrade: what a new column of a base relation has in old rows."),
]


def bring_over(
    state: Path | None, program: Program, *, upgrade: bool, dry_run: bool, defaults: Iterable[str], quiet: bool
) -> None:
    """Does nothing if it was not asked for, or if there is nothing to do."""
    given = _parsed(defaults)
    for option, is_given in (("--dry-run", dry_run), ("--default", bool(given))):
        if is_given and not upgrade:
            raise typer.BadParameter("this goes with --upgrade", param_hint=option)
    if not upgrade:
        return
    if state is None:
        raise typer.BadParameter("there is no state without --state DIR", param_hint="--upgrade")
    done = states.upgrade(state, program, defaults=given, dry_run=dry_run)
    if dry_run:
        for line in ["the state is this program's already"] if done is None else _told(done, "would be"):
            show(out, line)
        raise typer.Exit
    if done is not None and not quiet:
        for line in _told(done, "is"):
            show(err, line)


def _told(done: states.Upgrade, verb: str) -> Iterable[str]:
    yield from done.changed.lines()
    if done.changed.kept:
        yield f"as before: {', '.join(done.changed.kept)}"
    for name, size in done.sizes.items():
        change = f"+{done.gained[name]:,} -{done.lost[name]:,}" if done.gained[name] or done.lost[name] else "no change"
        yield f"{name}: {size:,} tuples, {change}"
    if done.anew is None:
        yield from (f"{each}" for each in done.adaptations)
        yield f"this {verb} epoch {done.epoch}: the tables of the last run adapted in {done.seconds:.1f} s"
    else:
        how = f"views derived anew from {done.base_tuples:,} base tuples in {done.seconds:.1f} s"
        yield f"this {verb} epoch {done.epoch}: {how}, since {done.anew}"


def _parsed(defaults: Iterable[str]) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for each in defaults:
        name, equals, value = each.partition("=")
        relation, dot, column = name.rpartition(".")
        if not (equals and dot and relation and column):
            raise typer.BadParameter(f"{each} is not RELATION.COLUMN=VALUE", param_hint="--default")
        found.setdefault(relation, {})[column] = value
    return found
