"""Networks to run programs on: generated and read topologies, what happens to their links, pictures."""

from whence.topology.draw import draw
from whence.topology.failures import LinkChanges, fail_and_repair
from whence.topology.graphs import chain, gnm, tree
from whence.topology.links import Link, Place, Topology
from whence.topology.read import read_topology
from whence.topology.shapes import grid_network, radio_field, random_network, scale_free_network, tree_network
from whence.topology.transit import DENSE, SPARSE, Stub, TransitStub, transit_stub
from whence.topology.workloads import come_up, fail_alone, fail_around, flap, refresh

__all__ = [
    "DENSE",
    "SPARSE",
    "Link",
    "LinkChanges",
    "Place",
    "Stub",
    "Topology",
    "TransitStub",
    "chain",
    "come_up",
    "draw",
    "fail_alone",
    "fail_and_repair",
    "fail_around",
    "flap",
    "gnm",
    "grid_network",
    "radio_field",
    "random_network",
    "read_topology",
    "refresh",
    "scale_free_network",
    "transit_stub",
    "tree",
    "tree_network",
]
