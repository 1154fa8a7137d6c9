"""Networks to run programs on: generated topologies, streams of failures, pictures."""

from whence.network.draw import draw
from whence.network.failures import Epoch, fail_and_repair
from whence.network.graphs import chain, gnm, tree
from whence.network.topology import Link, Stub, TransitStub, transit_stub

__all__ = [
    "Epoch",
    "Link",
    "Stub",
    "TransitStub",
    "chain",
    "draw",
    "fail_and_repair",
    "gnm",
    "transit_stub",
    "tree",
]
