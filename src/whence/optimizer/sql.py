"""SQL, one block of it, to a query; and which share of rows a condition is expected to let through."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from whence.optimizer.query import ColumnOf, Condition, Query, Relation
from whence.optimizer.statistics import Column, Scalar, Statistics, Table

MOST_RELATIONS = 20
SHARE_OF_RANGE = 1 / 3  # where nothing is known of the values
SHARE_OF_PATTERN = 1 / 10


class QueryError(ValueError):
    """A query that cannot be optimized; the message says what is in the way."""


def parse_query(text: str, statistics: Statistics) -> Query:
    """Raises QueryError if the text is not a single SELECT over tables with inner joins.

    >>> query = parse_query("SELECT a.x FROM a, b WHERE a.x = b.x AND b.y > 3", Statistics())
    >>> [each.name for each in query.relations], [each.text for each in query.conditions]
    (['a', 'b'], ['b.y > 3'])
    """
    try:
        statements = [each for each in sqlglot.parse(text) if each is not None]
    except SqlglotError as error:
        raise QueryError(str(error).split("\n", maxsplit=1)[0]) from None
    if not statements:
        raise QueryError("there is no query")
    if len(statements) > 1 or not isinstance(statements[0], exp.Select):
        kind = f"this is {statements[0].key.upper()}"
        raise QueryError(f"one SELECT is wanted; {kind if len(statements) == 1 else f'there are {len(statements)}'}")
    select = statements[0]
    _refuse(select)
    names = _Names(_tables(select), statistics)
    if not names.tables:
        raise QueryError("the query reads from no table")
    if len(names.tables) > MOST_RELATIONS:
        raise QueryError(f"the query joins {len(names.tables)} relations; at most {MOST_RELATIONS} can be optimized")
    equal: list[tuple[ColumnOf, ColumnOf]] = []
    conditions: list[Condition] = []
    for each in _ranges(list(_required(select)), names):
        pair = _joined(each, names)
        if pair is None:
            conditions.append(_condition(each, names))
        else:
            equal.append(pair)
    needed: dict[int, set[str]] = {at: set() for at in range(len(names.tables))}
    for column in select.find_all(exp.Column):
        found = names.find(column)
        if found is not None:
            needed[found.at].add(found.name)
    relations = tuple(
        Relation(name, table, frozenset(needed[at])) for at, (name, table) in enumerate(names.tables.items())
    )
    return Query(relations, tuple(equal), tuple(conditions), _group(select, names), tuple(_order(select, names)))


_BLOCKS: Mapping[type[exp.Expr], str] = {exp.Subquery: "a subquery", exp.Exists: "EXISTS", exp.SetOperation: "UNION"}
_UNSUPPORTED: Mapping[type[exp.Expr], str] = {
    exp.Window: "a window function",
    exp.TableSample: "TABLESAMPLE",
    exp.Qualify: "QUALIFY",
}


def _refuse(select: exp.Select) -> None:
    if select.args.get("with_") or select.args.get("having"):
        raise QueryError("WITH and HAVING are more than one block: optimize the blocks one by one")
    for kind, word in _BLOCKS.items():
        if select.find(kind):
            raise QueryError(f"{word} is more than one block: optimize the blocks one by one")
    if any(each is not select for each in select.find_all(exp.Select)):
        raise QueryError("a subquery is more than one block: optimize the blocks one by one")
    for kind, word in _UNSUPPORTED.items():
        if select.find(kind):
            raise QueryError(f"{word} is not supported")
    for join in select.args.get("joins") or ():
        special = join.method or join.side or (join.kind if join.kind not in ("INNER", "CROSS") else "")
        if special:
            raise QueryError(f"{special} JOIN: only inner joins with ON or WHERE can be put into another order")
        if join.args.get("using"):
            raise QueryError("JOIN … USING: write the condition out, with ON")


def _tables(select: exp.Select) -> dict[str, str]:
    found: dict[str, str] = {}
    sources = [select.args["from_"].this] if select.args.get("from_") else []
    for source in sources + [join.this for join in select.args.get("joins") or ()]:
        if not isinstance(source, exp.Table) or not isinstance(source.this, exp.Identifier):
            raise QueryError(f"{source.sql()} is not a table")
        name = (source.alias or source.name).lower()
        if name in found:
            raise QueryError(f"two relations are called {name}: give one another name")
        found[name] = source.name.lower()
    return found


@dataclass(frozen=True)
class _Names:
    tables: Mapping[str, str]
    statistics: Statistics

    def find(self, column: exp.Column) -> ColumnOf | None:
        """Where a column is, or None for a name that the query itself gives to a result."""
        name = column.name.lower()
        places = list(self.tables)
        if column.table:
            if column.table.lower() not in self.tables:
                raise QueryError(f"{column.sql()}: there is no relation {column.table}")
            return ColumnOf(places.index(column.table.lower()), name)
        if len(places) == 1:
            return ColumnOf(0, name)
        known = [at for at, table in enumerate(self.tables.values()) if name in self.statistics.table(table).columns]
        if len(known) > 1:
            raise QueryError(f"column {name} may be of {' or '.join(places[at] for at in known)}: say of which")
        return ColumnOf(known[0], name) if known else None

    def must_find(self, column: exp.Column) -> ColumnOf:
        found = self.find(column)
        if found is None:
            raise QueryError(
                f"column {column.name} may be of any relation: write RELATION.{column.name}, or give statistics"
            )
        return found

    def table(self, column: ColumnOf) -> tuple[Table, Column]:
        table = self.statistics.table(list(self.tables.values())[column.at])
        return table, table.column(column.name)


def _required(select: exp.Select) -> Iterator[exp.Expr]:
    wheres = [select.args["where"].this] if select.args.get("where") else []
    for each in wheres + [join.args["on"] for join in select.args.get("joins") or () if join.args.get("on")]:
        yield from each.flatten() if isinstance(each, exp.And) else [each]


def _ranges(required: list[exp.Expr], names: _Names) -> Iterator[exp.Expr]:
    """The same, with `low <= x` and `x < high` made one BETWEEN: as two they would count as independent."""
    sides: dict[tuple[ColumnOf, str], exp.Expr] = {}
    for each in required:
        ranged = isinstance(each, exp.LT | exp.LTE | exp.GT | exp.GTE) and isinstance(each.this, exp.Column)
        if ranged and constant(each.expression) is not None:
            side = "high" if isinstance(each, exp.LT | exp.LTE) else "low"
            sides.setdefault((names.must_find(each.this), side), each)
    merged: set[int] = set()
    for (column, side), low in sides.items():
        high = sides.get((column, "high"))
        if side == "low" and high is not None:
            merged |= {id(low), id(high)}
            yield exp.Between(this=low.this.copy(), low=low.expression.copy(), high=high.expression.copy())
    yield from (each for each in required if id(each) not in merged)


def _joined(condition: exp.Expr, names: _Names) -> tuple[ColumnOf, ColumnOf] | None:
    if not isinstance(condition, exp.EQ):
        return None
    left, right = condition.this.unnest(), condition.expression.unnest()
    if not isinstance(left, exp.Column) or not isinstance(right, exp.Column):
        return None
    one, other = names.must_find(left), names.must_find(right)
    return None if one.at == other.at else (one, other)


def _condition(condition: exp.Expr, names: _Names) -> Condition:
    columns = {names.must_find(column) for column in condition.find_all(exp.Column)}
    if not columns:
        raise QueryError(f"{condition.sql()} does not depend on any column")
    places = tuple(sorted({column.at for column in columns}))
    single = next(iter(columns)) if len(columns) == 1 else None

    def share(statistics: Statistics) -> float:
        return share_of(condition, lambda column: _Names(names.tables, statistics).table(names.must_find(column)))

    return Condition(condition.sql(), places, share, single)


def _group(select: exp.Select, names: _Names) -> tuple[ColumnOf, ...] | None:
    group = select.args.get("group")
    if group is not None:
        return tuple(names.must_find(each) for each in group.expressions if isinstance(each, exp.Column))
    if select.args.get("distinct"):
        return tuple(
            names.must_find(each) for each in select.find_all(exp.Column) if each.find_ancestor(exp.Where) is None
        )
    return () if any(each.find(exp.AggFunc) for each in select.expressions) else None


def _order(select: exp.Select, names: _Names) -> Iterator[ColumnOf | str]:
    order = select.args.get("order")
    for each in order.expressions if order is not None else ():
        column = each.this.unnest()
        found = names.find(column) if isinstance(column, exp.Column) and not each.args.get("desc") else None
        yield each.sql() if found is None else found


# -- shares of rows ------------------------------------------------------------------------------------------------------

Find = Callable[[exp.Column], tuple[Table, Column]]


def share_of(condition: exp.Expr, find: Find) -> float:
    """The share of rows that satisfy a condition, by histograms and common values where there are any."""
    return min(1.0, max(0.0, _share(condition, find)))


def _share(condition: exp.Expr, find: Find) -> float:
    match condition:
        case exp.Paren():
            return share_of(condition.this, find)
        case exp.And():
            return share_of(condition.left, find) * share_of(condition.right, find)
        case exp.Or():
            one, other = share_of(condition.left, find), share_of(condition.right, find)
            return one + other - one * other
        case exp.Not():
            return 1 - share_of(condition.this, find)
        case exp.In():
            return sum(_compared("=", condition.this, each, find) for each in condition.expressions)
        case exp.Between():
            low = _compared("<", condition.this, condition.args["low"], find)
            return _compared("<=", condition.this, condition.args["high"], find) - low
        case exp.Like():
            return SHARE_OF_PATTERN
        case exp.EQ():
            return _compared("=", condition.left, condition.right, find)
        case exp.NEQ():
            return 1 - _compared("=", condition.left, condition.right, find)
        case exp.LT() | exp.LTE() | exp.GT() | exp.GTE():
            signs: dict[type[exp.Expr], str] = {exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">="}
            return _compared(signs[type(condition)], condition.left, condition.right, find)
        case _:
            return SHARE_OF_RANGE


_TURNED = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def _compared(sign: str, left: exp.Expr, right: exp.Expr, find: Find) -> float:
    left, right = left.unnest(), right.unnest()
    if isinstance(right, exp.Column) and not isinstance(left, exp.Column):
        left, right, sign = right, left, _TURNED[sign]
    value = constant(right)
    if not isinstance(left, exp.Column) or value is None:
        return SHARE_OF_PATTERN if sign == "=" else SHARE_OF_RANGE
    table, column = find(left)
    equal = column.equal(value, table.rows)
    if sign == "=":
        return equal
    below = column.below(value)
    if below is None:
        return SHARE_OF_RANGE
    upto = min(below + equal, 1 - column.nulls)
    return {"<": below, "<=": upto, ">": 1 - column.nulls - upto, ">=": 1 - column.nulls - below}[sign]


def constant(expression: exp.Expr) -> Scalar | None:
    """The value of an expression without columns, as far as it is a number, a text or a date."""
    expression = expression.unnest()
    if isinstance(expression, exp.Cast):
        return constant(expression.this)
    if isinstance(expression, exp.Neg):
        value = constant(expression.this)
        return -value if isinstance(value, int | float) else None
    if not isinstance(expression, exp.Literal):
        return None
    if expression.is_string:
        return str(expression.this)
    number = float(expression.this)
    return int(number) if number.is_integer() else number
