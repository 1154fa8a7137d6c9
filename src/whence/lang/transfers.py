"""The parameters of `.input`, `.output` and `.printsize`: Souffle's names and defaults."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches

from whence.lang.diagnostics import BadDirective, Diagnostic
from whence.lang.program import Relation, Transfer

PARAMETERS = (
    "IO", "filename", "dbname", "name", "query", "url", "delimiter", "headers", "rfc4180", "columns", "compress", "format"
)  # fmt: skip

# The values of IO for each directive, the default first: a file, a standard stream or a server, and what is in it.
CHANNELS: Mapping[str, Mapping[str, tuple[str, str]]] = {
    "input": {
        "file": ("file", "text"),
        "stdin": ("stream", "text"),
        "jsonfile": ("file", "json"),
        "json": ("stream", "json"),
        "sqlite": ("file", "sqlite"),
        "duckdb": ("file", "duckdb"),
        "postgres": ("server", "postgres"),
    },
    "output": {
        "file": ("file", "text"),
        "stdout": ("stream", "text"),
        "jsonfile": ("file", "json"),
        "json": ("stream", "json"),
        "sqlite": ("file", "sqlite"),
    },
    "printsize": {"stdoutprintsize": ("stream", "text"), "stdout": ("stream", "text")},
}

DATABASES = ("sqlite", "duckdb", "postgres")

# Called with what is wrong and what to do about it, and with the parameter that it is about.
Complain = Callable[[str, str, str], None]


@dataclass(frozen=True, slots=True)
class Options:
    """How one relation is read or written; `filename` is None for the standard streams.

    In a `database` it is the table `name`, or what a `query` gives; on a server, which is at `url`.
    """

    name: str
    filename: str | None
    json: bool
    delimiter: str
    headers: bool
    rfc4180: bool
    compress: bool
    objects: bool
    columns: tuple[int, ...] | None
    database: str = ""
    query: str = ""
    url: str = ""


def read_options(transfer: Transfer, relation: Relation, complain: Complain) -> Options:
    given = _Given(transfer, relation, complain)
    given.refuse_unknown()
    medium, text = given.channel()
    name = transfer.params.get("name", relation.name)
    compress = given.flag("compress")
    rfc4180 = given.flag("rfc4180")
    filename = None
    if medium == "file":
        suffix = text if text != "text" else "facts" if transfer.kind == "input" else "csv"
        filename = given.filename(f"{name}.{suffix}" + (".gz" if compress and text == "text" else ""))
    database = text if text in DATABASES else ""
    given.check_database(database)
    return Options(
        name=name,
        filename=filename,
        json=text == "json",
        delimiter=given.delimiter(rfc4180=rfc4180),
        headers=given.flag("headers"),
        rfc4180=rfc4180,
        compress=compress,
        objects=given.format() == "object",
        columns=given.columns(),
        database=database,
        query=transfer.params.get("query", ""),
        url=transfer.params.get("url", ""),
    )


def check_transfers(
    transfers: Iterable[Transfer], relations: Mapping[str, Relation], *, stdin_reader: str | None = None
) -> list[Diagnostic]:
    """What is wrong with the parameters of a program's directives, each by itself and with each other."""
    found: list[Diagnostic] = []
    writers: dict[tuple[str, str], str] = {}
    for transfer in transfers:

        def complain(problem: str, advice: str, key: str, at: Transfer = transfer) -> None:
            found.append(BadDirective(at.param_spans.get(key, at.span), problem=problem, advice=advice))

        name = transfer.relation
        options = read_options(transfer, relations[name], complain)
        if transfer.kind == "input" and options.filename is None and not options.database:
            if stdin_reader is not None:
                complain(
                    f"{name} and {stdin_reader} are both read from the standard input", "read one from a file", "IO"
                )
            stdin_reader = name
        elif transfer.kind == "output" and options.filename is not None:
            # A database holds several tables.
            place = (options.filename, options.name.lower() if options.database else "")
            other = writers.setdefault(place, name)
            if other != name:
                table = f"{options.name} of " if options.database else ""
                complain(
                    f"{name} and {other} are both written to {table}{options.filename}",
                    "give one another filename",
                    "filename",
                )
    return found


@dataclass(frozen=True, slots=True)
class _Given:
    """One directive's parameters, each checked as it is asked for."""

    transfer: Transfer
    relation: Relation
    complain: Complain

    def refuse_unknown(self) -> None:
        directive = f".{self.transfer.kind} {self.relation.name}"
        for key in self.transfer.params:
            if key == "auxArity":
                self.complain("the parameter auxArity is not supported", "leave it out", key)
            elif key not in PARAMETERS:
                near = get_close_matches(key, PARAMETERS, n=1)
                advice = f"did you mean {near[0]}?" if near else f"the parameters are {', '.join(PARAMETERS)}"
                self.complain(f"{directive} has no parameter {key}", advice, key)

    def channel(self) -> tuple[str, str]:
        channels = CHANNELS[self.transfer.kind]
        default = next(iter(channels))
        asked = self.transfer.params.get("IO", default)
        if asked not in channels:
            known = " or ".join(f"IO={each}" for each in channels)
            self.complain(f"IO={asked} is not supported for .{self.transfer.kind}", f"write {known}", "IO")
        return channels.get(asked, channels[default])

    def flag(self, key: str) -> bool:
        text = self.transfer.params.get(key, "false")
        if text not in ("true", "false"):
            self.complain(f"{key}={text} is neither true nor false", f"write {key}=true or leave it out", key)
        return text == "true"

    def filename(self, default: str) -> str:
        filename = self.transfer.params.get("filename", self.transfer.params.get("dbname", default))
        if not filename or "\0" in filename:
            self.complain("the filename is empty or holds a zero byte", f"leave it out to use {default}", "filename")
        return filename

    def check_database(self, database: str) -> None:
        """Refuses parameters of text files for a database, and of databases for a text file."""
        is_file = database in ("sqlite", "duckdb")
        for key, is_meant, advice in (
            ("dbname", is_file, "write IO=sqlite, or filename"),
            ("filename", is_file or not database, "a server is named by url"),
            ("url", database == "postgres", "write IO=postgres, or filename"),
            ("query", bool(database) and self.transfer.kind == "input", "write IO=sqlite, IO=duckdb or IO=postgres"),
        ):
            if key in self.transfer.params and not is_meant:
                self.complain(f"{key} has no meaning for .{self.transfer.kind} {self._io()}", advice, key)
        if not database:
            return
        if "query" in self.transfer.params and "name" in self.transfer.params:
            self.complain("a query says which tables it reads: name has no meaning beside it", "leave one out", "name")
        for key in ("delimiter", "headers", "rfc4180", "columns", "compress", "format"):
            if key in self.transfer.params:
                self.complain(f"{key} has no meaning {self._io()}", "leave it out", key)
        if self.relation.arity == 0:
            self.complain(f"{self.relation.name} has no columns, as a table must", "write it to a fact file", "IO")

    def _io(self) -> str:
        return f"with IO={self.transfer.params['IO']}" if "IO" in self.transfer.params else "without IO"

    def delimiter(self, *, rfc4180: bool) -> str:
        text = self.transfer.params.get("delimiter", "," if rfc4180 else "\t").replace("\\t", "\t")
        if not text or "\n" in text or "\r" in text:
            self.complain(
                "the delimiter is empty or holds a line end", 'write a text such as delimiter=","', "delimiter"
            )
        elif rfc4180 and '"' in text:
            self.complain(
                "the delimiter of an rfc4180 file cannot hold a quote",
                'write a text such as delimiter=","',
                "delimiter",
            )
        return text

    def format(self) -> str:
        text = self.transfer.params.get("format", "list")
        if text not in ("list", "object"):
            self.complain(
                f"format={text} is not supported", "write format=list or format=object, with IO=jsonfile", "format"
            )
        return text

    def columns(self) -> tuple[int, ...] | None:
        text = self.transfer.params.get("columns")
        if text is not None and self.transfer.kind != "input":
            self.complain(
                f"columns has no meaning for .{self.transfer.kind}",
                "derive a relation with the columns wanted",
                "columns",
            )
        if text is None:
            return None
        parts = text.split(":")
        arity = self.relation.arity
        if not all(re.fullmatch("[0-9]{1,9}", part) for part in parts) or len(set(parts)) != len(parts):
            self.complain(
                f"columns={text} is not a list of columns", 'write their numbers, from 0: columns="0:2"', "columns"
            )
            return None
        if len(parts) != arity:
            self.complain(
                f"columns={text} names {len(parts)} columns, but {self.relation.name} has {arity}",
                "name one column of the file for each attribute",
                "columns",
            )
        return tuple(int(part) for part in parts)
