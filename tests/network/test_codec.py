"""What nodes tell each other survives being written and read, and is counted as it is written."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from whence import load
from whence.lang.types import Variant
from whence.network.codec import Codec, Shipment

PROGRAM = load(
    ".type P = [a:number, p:P] .type T = Leaf {} | Node {l:T, s:symbol} "
    ".decl r(n:number, u:unsigned, f:float, s:symbol, p:P, t:T) .input r .output r"
)
CODEC = Codec(PROGRAM.types, [tuple(field.kind for field in PROGRAM.relations["r"].fields)] * 3)
PAIRS = st.recursive(st.none(), lambda inner: st.tuples(st.integers(-9, 9), inner), max_leaves=4)
TREES = st.recursive(
    st.just(Variant("Leaf")),
    lambda inner: st.builds(lambda tree, text: Variant("Node", (tree, text)), inner, st.text(max_size=2)),
)
ROWS = st.tuples(
    st.integers(-(2**63), 2**63 - 1),
    st.integers(0, 2**64 - 1),
    st.floats(allow_nan=False).map(lambda real: real + 0.0),
    st.text(max_size=5),
    PAIRS,
    TREES,
)
ITEMS = st.lists(st.tuples(st.integers(0, 2), ROWS, st.none() | st.integers(0, 300)), min_size=1, max_size=5)
PHASES = st.tuples(st.integers(0, 500), st.integers(0, 3), st.integers(0, 2))


@given(phase=PHASES, items=ITEMS)
def test_shipments_survive(phase: tuple[int, int, int], items: list) -> None:
    shipment = Shipment(phase, items, CODEC)
    written = shipment.encode()
    read = Shipment.decode(written, CODEC)
    assert (read.phase, read.items) == (phase, items)
    assert shipment.size().bytes == len(written)
    assert shipment.size().tuples == len(items)


def test_a_text_is_written_once_in_a_message() -> None:
    row = (0, 0, 0.0, "a long name of a node", None, Variant("Leaf"))
    one = Shipment((0, 0, 1), [(0, row, 1)], CODEC)
    two = Shipment((0, 0, 1), [(0, row, 1), (0, row, 2)], CODEC)
    assert two.size().bytes - one.size().bytes < len(row[3])
