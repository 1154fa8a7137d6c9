"""The running example, and small helpers to say what is in it."""

from __future__ import annotations

from whence.exchange.check import load_confederation
from whence.exchange.instance import Edit, Instance
from whence.exchange.model import Confederation
from whence.lang.types import Tuple, Value, Variant

SCHEMAS = """
peer GUS { G(id: number, name: number, canon: number) key (id). }
peer BioSQL { B(bid: number, name: number). }
peer uBio { U(name1: number, name2: number). }
"""
MAPPINGS = """
m1: G(g, n, c) -> exists b. B(b, n).
m2: G(g, n, c) -> U(n, c).
m3: B(b, n1), U(n1, n2) -> B(b, n2).
"""
NAMES = (SCHEMAS + MAPPINGS).replace("name: number", "name: symbol").replace("canon: number", "canon: symbol")
NAMES = NAMES.replace("name1: number, name2: number", "name1: symbol, name2: symbol")
OSCI, DROS, MUSC, PERI = "Oscinella frit", "Drosophila melanogaster", "Musca domestica", "Periplaneta americana"


def confederation(*texts: str) -> Confederation:
    return load_confederation([("test.peers", "".join(texts))])


def put(relation: str, *rows: Tuple) -> list[Edit]:
    return [Edit("+", "local", relation, row) for row in rows]


def take(relation: str, *rows: Tuple) -> list[Edit]:
    return [Edit("-", "local", relation, row) for row in rows]


def reject(relation: str, *rows: Tuple) -> list[Edit]:
    return [Edit("+", "rejected", relation, row) for row in rows]


def null(*args: Value, of: str = "m1_b") -> Variant:
    return Variant(of, args)


# Base rows of the example with numbers.
NUMBERS = [
    *put("GUS.G", (1, 2, 3), (4, 5, 6)),
    *put("BioSQL.B", (7, 8)),
    *put("uBio.U", (6, 5)),
]
FIRST, SECOND = null(2), null(5)


def numbers(*policies: str, strategy: str = "support") -> Instance:
    return Instance(confederation(SCHEMAS, MAPPINGS, *policies), NUMBERS, strategy=strategy)
