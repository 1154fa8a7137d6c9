"""Fact files: how the tuples of relations come in and go out."""

from whence.io.errors import FactError, FactWarning
from whence.io.facts import is_large, output_path, print_size, read_from, read_relation, read_rows, write_relation
from whence.io.values import format_value, parse_fields, parse_value

__all__ = [
    "FactError",
    "FactWarning",
    "format_value",
    "is_large",
    "output_path",
    "parse_fields",
    "parse_value",
    "print_size",
    "read_from",
    "read_relation",
    "read_rows",
    "write_relation",
]
