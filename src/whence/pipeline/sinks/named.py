"""Sinks by the names that users give them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from whence.lang.program import Program
from whence.pipeline.sinks import Sink

FORMS = "parquet:FOLDER, delta:FOLDER, delta-changes:FOLDER or postgresql://…"


@dataclass(frozen=True)
class NamedSink:
    """Checked when it is made. Raises ValueError, without what may be a password."""

    text: str

    def __post_init__(self) -> None:
        if self.scheme not in _SINKS:
            what = f"there is no sink {self.scheme}" if self.scheme else f"{self.text} names no kind of sink"
            raise ValueError(f"{what}: write {FORMS}")
        if not self.text.partition(":")[2].strip("/"):
            raise ValueError(f"{self.text} does not say where to: write {FORMS}")

    @property
    def scheme(self) -> str:
        found, separator, _ = self.text.partition(":")
        return found if separator else ""

    def opened(self, program: Program) -> Sink:
        """Raises ValueError, FactError and MissingExtra."""
        return _SINKS[self.scheme](self.text, program)


# Imported when they are asked for: most need an extra.


def _parquet(text: str, program: Program) -> Sink:
    from whence.pipeline.sinks.parquet import ParquetSink  # noqa: PLC0415

    return ParquetSink(text.partition(":")[2], program)


def _delta(text: str, program: Program) -> Sink:
    from whence.pipeline.sinks.delta import DeltaViewsSink  # noqa: PLC0415

    return DeltaViewsSink(text.partition(":")[2], program)


def _delta_changes(text: str, program: Program) -> Sink:
    from whence.pipeline.sinks.delta import DeltaChangesSink  # noqa: PLC0415

    return DeltaChangesSink(text.partition(":")[2], program)


def _postgres(text: str, program: Program) -> Sink:
    from whence.pipeline.postgres import url_and_schema  # noqa: PLC0415
    from whence.pipeline.sinks.postgres import PostgresSink  # noqa: PLC0415

    url, schema = url_and_schema(text)
    return PostgresSink(url, program, schema=schema)


_SINKS: Mapping[str, Callable[[str, Program], Sink]] = {
    "parquet": _parquet,
    "delta": _delta,
    "delta-changes": _delta_changes,
    "postgresql": _postgres,
    "postgres": _postgres,
}
