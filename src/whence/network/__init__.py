"""Views of a network: programs placed on nodes, what they ship, and what it costs to keep them right."""

from whence.network.links import wiring_of
from whence.network.network import EpochFigures, Network
from whence.network.places import PlaceError
from whence.network.strategy import STRATEGIES, NodeState, Shipped, Strategy, Surroundings

__all__ = [
    "STRATEGIES",
    "EpochFigures",
    "Network",
    "NodeState",
    "PlaceError",
    "Shipped",
    "Strategy",
    "Surroundings",
    "wiring_of",
]
