"""`whence capture`: change capture in a PostgreSQL database."""

from __future__ import annotations

from typing import Annotated

import typer

from whence.cli.terminal import err
from whence.pipeline.sources.capture import capture_sql, release_sql


def capture(
    tables: Annotated[
        list[str], typer.Argument(metavar="TABLE...", help="TABLE or SCHEMA.TABLE, each with a primary key.")
    ],
    *,
    release: Annotated[bool, typer.Option("--release", help="End the capture instead.")] = False,
    url: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Run it in this database: postgresql://… or what else libpq takes."),
    ] = None,
) -> None:
    """Make a PostgreSQL database record the changes of tables, so that views can follow them.

    Without --url the SQL that does it is printed, for somebody to read and run: whence capture link | psql DATABASE
    """
    try:
        text = release_sql(tables) if release else capture_sql(tables)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="TABLE...") from None
    if url is None:
        typer.echo(text, nl=False)
        return
    _run(url, text)
    err.print(f"{'No longer captured' if release else 'Captured'}: {', '.join(tables)}")


def _run(url: str, text: str) -> None:
    try:
        import psycopg  # noqa: PLC0415 - an extra
    except ModuleNotFoundError:
        err.print("whence capture --url needs psycopg: pip install 'whence\\[postgres]'")
        raise typer.Exit(2) from None
    try:
        with psycopg.connect(url) as connection:
            connection.execute(text)
    except psycopg.Error as error:
        hint = f"\n  hint: {error.diag.message_hint}" if error.diag.message_hint else ""
        err.print(f"PostgreSQL: {error.diag.message_primary or error}{hint}", markup=False)
        raise typer.Exit(1) from None
