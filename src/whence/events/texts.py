"""Tuples and places as text: what the tables of a store hold, so that other tools can read them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from whence.events.program import EventProgram
from whence.io.json_rows import fields_from_json, fields_to_json
from whence.io.updates import AS_LISTS
from whence.lang.types import Tuple
from whence.provenance.graph import Fact


@dataclass
class Texts:
    events: EventProgram
    _columns: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._columns = {name: self.events.place_column(name) for name in self.events.program.relations}

    def text(self, fact: Fact) -> str:
        """The tuple as in the records of updates: a JSON list."""
        relation = self.events.program.relations[fact.relation]
        values = fields_to_json(fact.tuple, relation.fields, AS_LISTS, self.events.program.types)
        return json.dumps(values, ensure_ascii=False, allow_nan=False)

    def parse(self, relation: str, text: str) -> Tuple:
        return fields_from_json(
            json.loads(text), self.events.program.relations[relation].fields, self.events.program.types
        )

    def place(self, fact: Fact) -> str:
        """Where the tuple is, readable: a symbol as it is, other values as JSON."""
        value = fact.tuple[self._columns[fact.relation]]
        return value if isinstance(value, str) else json.dumps(value)
