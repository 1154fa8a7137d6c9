"""Networks to run programs on: generated topologies, streams of failures, pictures."""

from whence.topology.draw import draw
from whence.topology.failures import LinkChanges, fail_and_repair
from whence.topology.graphs import chain, gnm, tree
from whence.topology.transit import Link, Stub, TransitStub, transit_stub

__all__ = [
    "Link",
    "LinkChanges",
    "Stub",
    "TransitStub",
    "chain",
    "draw",
    "fail_and_repair",
    "gnm",
    "transit_stub",
    "tree",
]
