from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import pytest

from whence.io import FactError, read_relation, write_relation
from whence.lang.program import Relation, Transfer
from whence.lang.tree import NOWHERE
from whence.lang.types import (
    FLOAT,
    NUMBER,
    PRIMITIVES,
    SYMBOL,
    AdtKind,
    Field,
    Kind,
    ListKind,
    RecordKind,
    Tuple,
    Types,
)

PAIR = RecordKind("Pair")
NODE = RecordKind("Node")
EXPR = AdtKind("Expr")
KINDS: dict[str, Kind] = {
    **PRIMITIVES,
    "Pair": PAIR,
    "Node": NODE,
    "Expr": EXPR,
    "numbers": ListKind(NUMBER),
    "symbols": ListKind(SYMBOL),
}
TYPES = Types(
    kinds=KINDS,
    records={
        "Pair": (Field("x", "number", NUMBER), Field("s", "symbol", SYMBOL)),
        "Node": (Field("label", "symbol", SYMBOL), Field("next", "Node", NODE)),
    },
    adts={
        "Expr": {
            "Literal": (Field("value", "float", FLOAT),),
            "Name": (Field("name", "symbol", SYMBOL),),
            "Add": (Field("left", "Expr", EXPR), Field("right", "Expr", EXPR)),
            "Unit": (),
        }
    },
)


def signature(columns: str, name: str = "r") -> Relation:
    """A relation from text such as "x: number, y: symbol"."""
    parts = [part.strip().split(": ") for part in columns.split(",") if part.strip()]
    return Relation(name, tuple(Field(field, type_, KINDS[type_]) for field, type_ in parts), NOWHERE)


@pytest.fixture
def types() -> Types:
    return TYPES


@pytest.fixture
def relation() -> Callable[..., Relation]:
    return signature


Read = Callable[..., set[Tuple]]


@pytest.fixture
def read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Read:
    """Reads a file of the given content, as r.facts unless a name is given."""
    monkeypatch.chdir(tmp_path)

    def read(content: str | bytes, shape: str, /, *, file: str = "r.facts", **params: str) -> set[Tuple]:
        Path(file).write_bytes(content.encode() if isinstance(content, str) else content)
        return read_relation(Transfer("input", "r", params, NOWHERE), signature(shape), TYPES, Path())

    return read


@pytest.fixture
def refusal(read: Read) -> Callable[..., str]:
    """The text of the error that reading such a file ends in."""

    def refusal(content: str | bytes, shape: str, /, **params: str) -> str:
        with pytest.raises(FactError) as caught:
            read(content, shape, **params)
        return str(caught.value)

    return refusal


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Writes the rows and returns the content of the file."""
    monkeypatch.chdir(tmp_path)

    def write(rows: Iterable[Tuple], shape: str, /, *, file: str = "r.csv", **params: str) -> str:
        write_relation(transfer(params), signature(shape), TYPES, rows, Path())
        return Path(file).read_bytes().decode()

    return write


@pytest.fixture
def printed(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Writes the rows without a folder and returns what was printed."""

    def printed(rows: Iterable[Tuple], shape: str, /, **params: str) -> str:
        write_relation(transfer(params), signature(shape), TYPES, rows, None)
        return capsys.readouterr().out

    return printed


def transfer(params: Mapping[str, str]) -> Transfer:
    return Transfer("output", "r", params, NOWHERE)
