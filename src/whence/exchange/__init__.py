"""Peers that share data they half trust: mappings between their schemas, policies, edits published and translated."""

from whence.exchange.check import load_confederation, load_confederation_file
from whence.exchange.instance import Edit, Instance
from whence.exchange.model import Confederation

__all__ = ["Confederation", "Edit", "Instance", "load_confederation", "load_confederation_file"]
