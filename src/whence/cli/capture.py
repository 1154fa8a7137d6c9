"""`whence capture`: change capture in a PostgreSQL database."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from whence.cli.evaluate import reported_errors
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
    url_env: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The same, from an environment variable, which no list of processes shows."),
    ] = None,
    url_file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The same, from the first line of a file.", exists=True, dir_okay=False),
    ] = None,
) -> None:
    """Make a PostgreSQL database record the changes of tables, so that views can follow them.

    Without a URL the SQL that does it is printed, for somebody to read and run: whence capture link | psql DATABASE
    """
    try:
        text = release_sql(tables) if release else capture_sql(tables)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="TABLE...") from None
    found = _url(url, url_env, url_file)
    if found is None:
        typer.echo(text, nl=False)
        return
    with reported_errors():
        _run(found, text)
    err.print(f"{'No longer captured' if release else 'Captured'}: {', '.join(tables)}")


def _url(given: str | None, variable: str | None, file: Path | None) -> str | None:
    if sum(each is not None for each in (given, variable, file)) > 1:
        raise typer.BadParameter("give one of --url, --url-env and --url-file", param_hint="--url")
    if variable is not None:
        if not os.environ.get(variable):
            raise typer.BadParameter(f"there is no environment variable {variable}", param_hint="--url-env")
        return os.environ[variable]
    if file is not None:
        return file.read_text(encoding="utf-8").partition("\n")[0].strip()
    return given


def _run(url: str, text: str) -> None:
    import psycopg  # noqa: PLC0415 - the same

    from whence.pipeline.postgres import connect  # noqa: PLC0415 - an extra

    with connect(url) as connection:
        try:
            connection.execute(text)
        except psycopg.Error as error:
            hint = f"\n  hint: {error.diag.message_hint}" if error.diag.message_hint else ""
            err.print(f"PostgreSQL: {error.diag.message_primary or error}{hint}", markup=False)
            raise typer.Exit(1) from None
