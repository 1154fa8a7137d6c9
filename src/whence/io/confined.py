"""Programs that may name only files below the folders they are given.

They may ask no server, and ask databases no queries of their own, which could name other files.
"""

from __future__ import annotations

from pathlib import Path

from whence.lang.diagnostics import BadDirective, Diagnostics
from whence.lang.program import Program
from whence.lang.transfers import read_options

_NAMING = ("filename", "dbname", "name")


def refuse_files_outside(program: Program, facts: Path | None, output: Path | None) -> None:
    """Raises `ProgramError` for every directive whose file is not below its folder, links followed; None: no file is touched."""
    found = Diagnostics(program.source)
    for transfer in program.transfers:
        folder = facts if transfer.kind == "input" else output
        options = read_options(transfer, program.relations[transfer.relation], lambda *_: None)
        if options.query or options.database == "postgres":
            found.add(
                BadDirective(
                    next(
                        (transfer.param_spans[key] for key in ("query", "IO") if key in transfer.param_spans),
                        transfer.span,
                    ),
                    problem="a query may read whatever the database can"
                    if options.query
                    else "a server is not below a folder",
                    advice="with --confined a program reads tables and files below -F",
                )
            )
            continue
        filename = options.filename
        if folder is None or filename is None or (folder / filename).resolve().is_relative_to(folder.resolve()):
            continue
        found.add(
            BadDirective(
                next((transfer.param_spans[key] for key in _NAMING if key in transfer.param_spans), transfer.span),
                problem=f"{filename} is not below {folder}",
                advice="with --confined a program reads below -F and writes below -D: give it a name in there",
            )
        )
    found.raise_if_errors()
