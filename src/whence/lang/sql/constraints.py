"""What a CREATE TABLE says about its rows: which columns may be null, what tells rows apart, what they satisfy."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from whence.lang.diagnostics import Diagnostic, SqlShape, SqlUnsupported
from whence.lang.sql.nodes import inner
from whence.lang.sql.parse import span_of
from whence.lang.tables import Key

# What a reference may say besides: at the end of an epoch is when all are looked at, and nothing else is done about them.
_OPTIONS = frozenset(
    {"DEFERRABLE", "INITIALLY DEFERRED", "MATCH SIMPLE"}
    | {f"ON {what} {action}" for what in ("DELETE", "UPDATE") for action in ("NO ACTION", "RESTRICT")}
)


@dataclass(frozen=True)
class Referring:
    """Columns by their names, and what they refer to, as it is written."""

    columns: tuple[str, ...]
    reference: exp.Expr
    place: exp.Expr


class Constraints:
    """Collects the constraints of one table."""

    def __init__(self, found: list[Diagnostic]) -> None:
        self._found = found
        self._not_null: set[str] = set()
        self._primary: list[list[exp.Expr]] = []
        self._unique: list[list[exp.Expr]] = []
        self.checks: list[exp.Expr] = []
        self.references: list[Referring] = []

    def add(self, node: exp.Expr, column: str | None = None) -> None:
        own: list[exp.Expr] = [exp.to_identifier(column)] if column is not None else []
        if isinstance(node, exp.Constraint):
            for each in node.expressions:
                self.add(each)
        elif isinstance(node, exp.PrimaryKeyColumnConstraint):
            self._primary.append(own)
        elif isinstance(node, exp.PrimaryKey):
            self._primary.append(node.expressions)
        elif isinstance(node, exp.UniqueColumnConstraint):
            listed = node.this.expressions if isinstance(node.this, exp.Schema) else own
            self._unique.append(listed)
        elif isinstance(node, exp.NotNullColumnConstraint):
            if column is not None and not node.args.get("allow_null"):
                self._not_null.add(column.lower())
        elif isinstance(node, exp.CheckColumnConstraint):
            self.checks.append(node.this)
        elif isinstance(node, exp.Reference):
            self._refer([column or ""], node, node)
        elif isinstance(node, exp.ForeignKey):
            self._refer([_name(part) for part in node.expressions], node.args["reference"], node)
        else:
            is_default = isinstance(node, exp.DefaultColumnConstraint)
            named = "DEFAULT" if is_default else node.sql() or node.key.upper()
            advice = "PRIMARY KEY, UNIQUE, NOT NULL, CHECK and REFERENCES may stand here"
            self._found.append(SqlUnsupported(span_of(node), feature=named, advice=advice))

    def _refer(self, columns: list[str], reference: exp.Expr, place: exp.Expr) -> None:
        for option in reference.args.get("options") or ():
            if str(option).upper() not in _OPTIONS:
                advice = "leave it out: a row that others refer to stays until they go"
                self._found.append(SqlUnsupported(span_of(place), feature=str(option), advice=advice))
        self.references.append(Referring(tuple(each.lower() for each in columns), reference, place))

    def nullable(self, columns: list[str]) -> list[bool]:
        """Which columns may be null: those that nothing says otherwise of."""
        sure = self._not_null | {_name(part) for key in self._primary for part in key}
        return [column.lower() not in sure for column in columns]

    def keys(self, columns: list[str]) -> list[Key]:
        """What is PRIMARY KEY or UNIQUE, by the positions of columns."""
        places = {column.lower(): at for at, column in enumerate(columns)}
        found: list[Key] = []
        for word, keys in (("PRIMARY KEY", self._primary), ("UNIQUE", self._unique)):
            for key in keys:
                names = [_name(part) for part in key]
                for part, name in zip(key, names, strict=True):
                    if name not in places:
                        problem = f"there is no column {name} to be a key"
                        advice = f"the columns are {', '.join(columns)}"
                        self._found.append(SqlShape(span_of(part), problem=problem, advice=advice))
                at = tuple(places[name] for name in dict.fromkeys(names) if name in places)
                if len(at) == len(set(names)):
                    found.append(Key(at, f"{word} ({', '.join(columns[place] for place in at)})"))
        return found


def telling_apart(keys: list[Key], nullable: list[bool]) -> list[frozenset[int]]:
    """The keys that every two rows differ in. One that may be null is none: several rows may be null there."""
    return [frozenset(key.columns) for key in keys if not any(nullable[at] for at in key.columns)]


def _name(part: exp.Expr) -> str:
    node = inner(part.this if isinstance(part, exp.Ordered) else part)
    return node.name.lower()
