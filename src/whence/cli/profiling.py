"""`--profile`, wherever views are evaluated: what each rule costs, said at the end."""

from __future__ import annotations

import json
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from whence.cli.terminal import err, show
from whence.io.updates import reported_writing

if TYPE_CHECKING:
    from whence.engine.profile import Profile
    from whence.session import Session

ProfileOption = Annotated[
    bool,
    typer.Option(
        "--profile", help="Say what each rule and literal costs, and what to change first.", rich_help_panel="Profile"
    ),
]
ProfileToOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Write the profile to a page (.html) or as one JSON object (.json) instead.",
        rich_help_panel="Profile",
        dir_okay=False,
    ),
]


def wanted_profile(is_wanted: bool, path: Path | None) -> Profile | None:
    """A profile to be filled, if one is asked for."""
    if path is not None and path.suffix not in (".html", ".json"):
        raise typer.BadParameter(f"{path.name} ends neither in .html nor in .json", param_hint="--profile-to")
    if not is_wanted and path is None:
        return None
    from whence.engine.profile import Profile  # noqa: PLC0415 - nobody else waits for it

    return Profile()


def waited(costs: Profile | None, what: str) -> AbstractContextManager[None]:
    return nullcontext() if costs is None else costs.waiting(what)


def tell_profile(profile: Profile, session: Session, path: Path | None, *, title: str) -> None:
    from whence.profile import report, to_html, to_json, to_text  # noqa: PLC0415 - few ask for it

    told = report(profile, session)
    if path is None:
        show(err, to_text(told))
        return
    with reported_writing(path):
        text = json.dumps(to_json(told), indent=2) if path.suffix == ".json" else to_html(told, title)
        path.write_text(text + "\n", encoding="utf-8")
    show(err, f"the profile is in {path}")
