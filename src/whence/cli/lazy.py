"""Commands whose modules are imported when they run: an engine takes longer to load than most help takes to read."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperCommand


class LazyCommand(TyperCommand):
    """The command behind `target` (`module:function`, or a group of commands), of which help knows the `summary` beforehand."""

    def __init__(self, name: str, target: str, summary: str, panel: str) -> None:
        super().__init__(name=name, help=summary, rich_help_panel=panel)
        self.target = target

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        module, _, function = self.target.partition(":")
        app = getattr(import_module(module), function)
        if not isinstance(app, typer.Typer):
            command, app = (
                app,
                typer.Typer(rich_markup_mode="markdown", add_completion=False, pretty_exceptions_enable=False),
            )
            app.command(self.name)(command)
        if "whence.backends.local.compiling" in sys.modules:
            import_module("whence.cli.warm").announce_compilation()
        return typer.main.get_command(app).make_context(info_name, args, parent=parent, **extra)
