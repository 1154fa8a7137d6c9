"""Commands whose modules are imported when they run: an engine takes longer to load than most help takes to read."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import typer
from typer.core import TyperCommand

from whence.backends.local.announcing import LISTENERS
from whence.cli.compilation_news import CompilationNews, compile_soon


class LazyCommand(TyperCommand):
    """The command behind `target` (`module:function`, or `module:app` for a group), whose `summary` help knows beforehand."""

    def __init__(self, name: str, target: str, summary: str, panel: str) -> None:
        super().__init__(name=name, help=summary, rich_help_panel=panel)
        self.target = target

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        module, _, function = self.target.partition(":")
        found = getattr(import_module(module), function)
        if self.name != "warm" and not LISTENERS:  # which has its own way to tell
            LISTENERS.append(CompilationNews(compile_soon))
        if isinstance(found, typer.Typer):
            return typer.main.get_command(found).make_context(info_name, args, parent=parent, **extra)
        app = typer.Typer(rich_markup_mode="markdown", add_completion=False, pretty_exceptions_enable=False)
        app.command(self.name)(found)
        return typer.main.get_command(app).make_context(info_name, args, parent=parent, **extra)
