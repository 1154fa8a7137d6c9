"""Peers that share data they half trust: mappings between their schemas, policies, edits published and translated."""

from whence.exchange.answers import answers
from whence.exchange.check import load_confederation, load_confederation_file
from whence.exchange.explain import ExchangeDerivations, whynot
from whence.exchange.instance import Edit, Instance
from whence.exchange.mappings import mapping_rules
from whence.exchange.model import Confederation
from whence.exchange.parser import read_files
from whence.exchange.peer import Peer
from whence.exchange.replica import Replica
from whence.exchange.rows import show_row, sort_rows
from whence.exchange.store import SharedStore
from whence.exchange.tables import PeerTables

__all__ = [
    "Confederation",
    "Edit",
    "ExchangeDerivations",
    "Instance",
    "Peer",
    "PeerTables",
    "Replica",
    "SharedStore",
    "answers",
    "load_confederation",
    "load_confederation_file",
    "mapping_rules",
    "read_files",
    "show_row",
    "sort_rows",
    "whynot",
]
