"""Random SQL, and random rows for it: statements that DuckDB and Whence understand alike.

Tables hold nulls, few different values, and (where they have no key) duplicates. Everything that SQL leaves open is said:
where nulls are ordered, and which of equal rows a LIMIT takes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from random import Random

SCHEMA = """
CREATE TABLE t(a BIGINT, b BIGINT, s TEXT, d DATE, p DECIMAL(6,2));
CREATE TABLE u(k BIGINT PRIMARY KEY, a BIGINT, s TEXT NOT NULL, m TIMESTAMP);
CREATE TABLE w(a BIGINT NOT NULL, x DOUBLE, d DATE NOT NULL, q DECIMAL(9,3) NOT NULL);
"""
TABLES = {
    "t": (("a", "int"), ("b", "int"), ("s", "text"), ("d", "date"), ("p", "exact")),
    "u": (("k", "int"), ("a", "int"), ("s", "text"), ("m", "time")),
    "w": (("a", "int"), ("x", "float"), ("d", "date"), ("q", "exact")),
}
NOT_NULL = {("u", "k"), ("u", "s"), ("w", "a"), ("w", "d"), ("w", "q")}
KINDS = ("int", "int", "text", "float", "date", "time", "exact", "exact")
# Kinds whose values compare with each other.
COMPARABLE = {"int": ("int", "exact", "float"), "exact": ("exact", "int", "float"), "date": ("date", "time")}
DATES = (date(1969, 12, 31), date(2023, 12, 31), date(2024, 2, 29), date(2024, 3, 1))
TIMES = (datetime(2024, 2, 29), datetime(2024, 2, 29, 12, 30, 1, 500000), datetime(1969, 12, 31, 23, 59, 59, 999999))  # noqa: DTZ001
Row = tuple[object, ...]


@dataclass(frozen=True)
class Column:
    name: str
    kind: str


def random_row(random: Random, table: str) -> Row:
    values: dict[str, Callable[[], object]] = {
        "int": lambda: random.choice((-1, 0, 1, 2, 3)),
        "text": lambda: random.choice(("", "a", "b", "ab", "A")),
        "float": lambda: random.choice((-0.5, 0.0, 0.25, 1.5)),
        "date": lambda: random.choice(DATES),
        "time": lambda: random.choice(TIMES),
        "exact": lambda: Decimal(random.choice(("-1.5", "0", "0.25", "1", "1.5", "9999.99"))),
    }
    return tuple(
        None if random.random() < 0.25 and (table, name) not in NOT_NULL else values[kind]()
        for name, kind in TABLES[table]
    )


class Statements:
    """Makes one query after the other. `depth` bounds how deep subqueries nest."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.names = 0

    def name(self) -> str:
        self.names += 1
        return f"c{self.names}"

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    # -- values

    def value(self, kind: str, columns: list[Column], depth: int = 2) -> str:
        own = [column.name for column in columns if column.kind == kind]
        if own and (depth == 0 or self.chance(0.55)):
            return self.random.choice(own)
        if depth == 0:
            return self.literal(kind)
        inner = depth - 1
        pick = self.random.randrange(8)
        if pick == 0:
            return f"COALESCE({self.value(kind, columns, inner)}, {self.value(kind, columns, inner)})"
        if pick == 1:
            return f"NULLIF({self.value(kind, columns, inner)}, {self.value(kind, columns, inner)})"
        if pick == 2:
            test = self.condition(columns, inner)
            other = f" ELSE {self.value(kind, columns, inner)}" if self.chance(0.6) else ""
            return f"CASE WHEN {test} THEN {self.value(kind, columns, inner)}{other} END"
        if pick == 3 and kind == "int":
            return f"LENGTH({self.value('text', columns, inner)})"
        if pick == 4 and kind != "text":
            name = self.random.choice(("GREATEST", "LEAST"))
            return f"{name}({self.value(kind, columns, inner)}, {self.value(kind, columns, inner)})"
        if kind in ("date", "time", "exact"):
            return self.scalar(kind, columns, inner)
        if self.chance(0.3):
            return self.of_scalars(kind, columns, inner)
        if kind == "text":
            form = self.random.choice(
                ("{0} || {1}", "SUBSTRING({0}, 1, 1)", "CONCAT({0}, {1})", "UPPER({0})", "LOWER({0})")
            )
            return "(" + form.format(self.value(kind, columns, inner), self.value(kind, columns, inner)) + ")"
        if kind == "int":
            op = self.random.choice("+-*%")
            return f"({self.value(kind, columns, inner)} {op} {self.value(kind, columns, inner)})"
        return (
            f"({self.value(kind, columns, inner)} + {self.value(self.random.choice(('int', 'float')), columns, inner)})"
        )

    def scalar(self, kind: str, columns: list[Column], inner: int) -> str:
        """A date, a timestamp or a decimal that is computed."""
        whole = self.random.randrange(4)
        unit = self.random.choice(("YEAR", "MONTH", "DAY", "WEEK", "HOUR", "MINUTE", "SECOND"))
        trunc = self.random.choice(("year", "quarter", "month", "week", "day", "hour", "minute", "second"))
        forms = {
            "date": ("({date} + {whole})", "({date} - {whole})", "CAST({time} AS DATE)", "LAST_DAY({date})"),
            "time": (
                "({time} + INTERVAL '{whole}' {unit})",
                "({date} - INTERVAL '{whole}' {unit})",
                "({time} - INTERVAL '{whole} months {whole} days 01:02:03.5')",
                "DATE_TRUNC('{trunc}', {time})",
                "DATE_TRUNC('{trunc}', {date})",
                "CAST({date} AS TIMESTAMP)",
            ),
            "exact": (
                *("({exact} + {exact})", "({exact} - {exact})", "({exact} + {int})", "({near} * {near})", "(-{exact})"),
                *(
                    "({near} * {whole})",
                    "ABS({exact})",
                    "ROUND({exact}, {whole})",
                    "ROUND({exact}, -1)",
                    "FLOOR({exact})",
                ),
                # DuckDB goes on with floats where both sides of a remainder would take over 38 digits, as a sum may.
                *("CEIL({exact})", "TRUNC({exact})", "(CAST({exact} AS DECIMAL(9,3)) % 0.7)"),
                "CAST({float} AS DECIMAL(9,2))",
                *("CAST({exact} AS DECIMAL(12,1))", "CAST({int} AS DECIMAL(8,3))", "CAST('12.345' AS DECIMAL(8,2))"),
            ),
        }
        return self.filled(self.random.choice(forms[kind]), columns, inner, whole=whole, unit=unit, trunc=trunc)

    def of_scalars(self, kind: str, columns: list[Column], inner: int) -> str:
        """A number, a float or text made of a date, a timestamp or a decimal."""
        part = self.random.choice(("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "DOW", "ISODOW", "DOY", "ISOYEAR"))
        time = self.random.choice(("HOUR", "MINUTE", "SECOND", "MILLISECOND", "MICROSECOND", "DECADE", "CENTURY"))
        unit = self.random.choice(("year", "quarter", "month", "day"))
        forms = {
            "int": (
                *("EXTRACT({part} FROM {date})", "EXTRACT({time_part} FROM {time})", "DATE_PART('{part}', {time})"),
                *(
                    "({date} - {date})",
                    "SIGN({exact})",
                    "CAST({exact} AS BIGINT)",
                    "DATE_DIFF('{unit}', {date}, {date})",
                ),
            ),
            "float": ("({exact} / 4)", "CAST({exact} AS DOUBLE)", "({exact} + {float})", "EXTRACT(EPOCH FROM {time})"),
            "text": ("CAST({date} AS TEXT)", "CAST({time} AS TEXT)", "CAST({exact} AS TEXT)", "({exact} || {text})"),
        }
        form = self.random.choice(forms[kind])
        return self.filled(form, columns, inner, part=part, time_part=time, unit=unit)

    def filled(self, form: str, columns: list[Column], inner: int, **words: object) -> str:
        """The form with random values in it; `near` is a decimal that is not computed."""
        values = {kind: self.value(kind, columns, inner) for kind in set(KINDS) if f"{{{kind}}}" in form}
        return form.format(**values, near=self.value("exact", columns, 0), **words)

    def literal(self, kind: str) -> str:
        if kind == "date":
            return f"DATE '{self.random.choice(DATES)}'"
        if kind == "time":
            return f"TIMESTAMP '{self.random.choice(TIMES)}'"
        if kind == "exact":
            return self.random.choice(("0.25", "1.5", "1.50", "-0.005", "2.0"))
        if kind == "text":
            return self.random.choice(("''", "'a'", "'b'"))
        return self.random.choice(("5e-1", "1.5e0")) if kind == "float" else str(self.random.randrange(4))

    # -- conditions

    def condition(self, columns: list[Column], depth: int = 2) -> str:
        kind = self.random.choice([column.kind for column in columns] or ["int"])
        low = max(0, depth - 1)
        pick = self.random.randrange(12 if depth else 5)
        one = self.value(kind, columns, low)
        if pick < 4:
            op = self.random.choice(("=", "<>", "<", "<=", ">", ">="))
            other = self.random.choice(COMPARABLE.get(kind, (kind,)))
            return f"{one} {op} {self.value(other, columns, low)}"
        if pick == 4:
            return f"{one} IS {self.random.choice(('', 'NOT '))}NULL"
        if pick == 5:
            return f"{one} IS {self.random.choice(('', 'NOT '))}DISTINCT FROM {self.value(kind, columns, low)}"
        if pick == 6:
            return f"NOT ({self.condition(columns, low)})"
        if pick in (7, 8):
            op = self.random.choice(("AND", "OR"))
            return f"({self.condition(columns, low)} {op} {self.condition(columns, low)})"
        if pick == 9:
            between = self.random.choice(("BETWEEN", "NOT BETWEEN"))
            return f"{one} {between} {self.value(kind, columns, low)} AND {self.value(kind, columns, low)}"
        if pick == 10:
            listed = ", ".join(self.value(kind, columns, 0) for _ in range(self.random.randint(1, 3)))
            return f"{one} {self.random.choice(('IN', 'NOT IN'))} ({listed})"
        like = self.random.choice(("LIKE", "NOT LIKE", "ILIKE"))
        return f"{self.value('text', columns, low)} {like} {self.random.choice(_PATTERNS)}"

    def subquery_condition(self, columns: list[Column], outer: bool = True) -> str:
        kind = self.random.choice(("int", "text", "date", "exact"))
        own = [column for column in columns if column.kind == kind] or None
        one = self.random.choice(own).name if own else self.literal(kind)
        inner, inside = self.source("i")
        correlated = self.condition([*inside, *columns] if outer and self.chance(0.5) else inside, 1)
        where = f" WHERE {correlated}" if self.chance(0.7) else ""
        value = self.value(kind, inside, 0)
        pick = self.random.randrange(4)
        if pick == 0:
            return f"{self.random.choice(('', 'NOT '))}EXISTS (SELECT 1 FROM {inner}{where})"
        if pick == 1:
            return f"{one} {self.random.choice(('IN', 'NOT IN'))} (SELECT {value} FROM {inner}{where})"
        if pick == 2:
            op = self.random.choice(("=", "<>", "<", ">="))
            return f"{one} {op} {self.random.choice(('ANY', 'ALL'))} (SELECT {value} FROM {inner}{where})"
        function = self.random.choice(("MIN", "MAX", "COUNT"))
        op, kind = self.random.choice(("=", "<", ">=")), kind if function != "COUNT" else "int"
        own = [column for column in columns if column.kind == kind] or None
        one = self.random.choice(own).name if own else self.literal(kind)
        return f"{one} {op} (SELECT {function}({value}) FROM {inner}{where})"

    # -- tables

    def source(self, alias: str) -> tuple[str, list[Column]]:
        table = self.random.choice(list(TABLES))
        return f"{table} {alias}", [Column(f"{alias}.{name}", kind) for name, kind in TABLES[table]]

    def derived(self, alias: str) -> tuple[str, list[Column]]:
        if self.chance(0.75):
            return self.source(alias)
        query, columns = self.query(1)
        return f"({query}) {alias}", [Column(f"{alias}.{column.name}", column.kind) for column in columns]

    def tables(self, depth: int) -> tuple[str, list[Column]]:
        text, columns = self.derived("p") if depth > 1 else self.source("p")
        for alias in ("q", "r")[: self.random.choice((0, 0, 1, 1, 2))]:
            other, more = self.derived(alias) if depth > 1 else self.source(alias)
            join = self.random.choice(("JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "CROSS JOIN"))
            condition = "" if join == "CROSS JOIN" else f" ON {self.join_condition(columns, more, join)}"
            text, columns = f"{text} {join} {other}{condition}", [*columns, *more]
        return text, columns

    def join_condition(self, left: list[Column], right: list[Column], join: str) -> str:
        kinds = sorted({column.kind for column in left} & {column.kind for column in right})
        if not kinds:
            return "1 = 1"
        kind = self.random.choice(kinds)
        one = self.random.choice([column.name for column in left if column.kind == kind])
        other = self.random.choice([column.name for column in right if column.kind == kind])
        # DuckDB joins on both sides outer only by equations.
        op = "=" if join == "FULL JOIN" or self.chance(0.8) else self.random.choice(("<", "<>"))
        more = f" AND {self.condition([*left, *right], 1)}" if join != "FULL JOIN" and self.chance(0.2) else ""
        return f"{one} {op} {other}{more}"

    # -- queries

    def query(self, depth: int = 2) -> tuple[str, list[Column]]:
        if depth > 1 and self.chance(0.2):
            return self.set_operation(depth)
        if self.chance(0.3):
            return self.grouped(depth)
        return self.select(depth)

    def where(self, columns: list[Column], depth: int) -> str:
        if not self.chance(0.6):
            return ""
        condition = self.condition(columns)
        if depth > 1 and self.chance(0.35):
            condition = f"{condition} {self.random.choice(('AND', 'OR'))} {self.subquery_condition(columns)}"
        return f" WHERE {condition}"

    def items(self, columns: list[Column], kinds: list[str]) -> tuple[str, list[Column]]:
        made = [Column(self.name(), kind) for kind in kinds]
        listed = (f"{self.value(each.kind, columns)} AS {each.name}" for each in made)
        return ", ".join(listed), made

    def select(self, depth: int, kinds: list[str] | None = None) -> tuple[str, list[Column]]:
        text, columns = self.tables(depth)
        where = self.where(columns, depth)
        asked = kinds or [self.random.choice(KINDS) for _ in range(self.random.randint(1, 3))]
        items, made = self.items(columns, asked)
        if kinds is None and self.chance(0.15):
            window, column = self.window(columns)
            items, made = f"{items}, {window}", [*made, column]
        distinct = "DISTINCT " if self.chance(0.2) else ""
        limit = ""
        if self.chance(0.12):
            limit = f" ORDER BY {self.order([column.name for column in made])} LIMIT {self.random.randrange(4)}"
            limit += f" OFFSET {self.random.randrange(3)}" if self.chance(0.3) else ""
        return f"SELECT {distinct}{items} FROM {text}{where}{limit}", made

    def order(self, names: list[str]) -> str:
        return ", ".join(
            f"{name} {self.random.choice(('ASC', 'DESC'))} NULLS {self.random.choice(('FIRST', 'LAST'))}"
            for name in names
        )

    def window(self, columns: list[Column]) -> tuple[str, Column]:
        """What has one answer whatever the order of equal rows."""
        keys = [column.name for column in columns if self.chance(0.3)]
        partition = f"PARTITION BY {', '.join(keys)} " if keys else ""
        name = self.name()
        numbers = [column for column in columns if column.kind in ("int", "exact")] or [Column("1", "int")]
        chosen = self.random.choice(numbers)
        argument = chosen.name
        function = self.random.choice(("RANK()", "DENSE_RANK()", "COUNT(*)", f"SUM({argument})", f"MAX({argument})"))
        needs = function in ("RANK()", "DENSE_RANK()")
        order = f"ORDER BY {self.order([self.random.choice(columns).name])}" if needs or self.chance(0.5) else ""
        kind = chosen.kind if function.startswith(("SUM", "MAX")) else "int"
        return f"{function} OVER ({partition}{order}) AS {name}", Column(name, kind)

    def grouped(self, depth: int) -> tuple[str, list[Column]]:
        text, columns = self.tables(depth)
        where = self.where(columns, depth)
        keys = [
            self.value(self.random.choice(("int", "text", "date", "exact")), columns, 1)
            for _ in range(self.random.randrange(3))
        ]
        keys = [key for key in dict.fromkeys(keys) if "." in key]
        made = [Column(self.name(), "key") for _ in keys]
        items = [f"{key} AS {column.name}" for key, column in zip(keys, made, strict=True)]
        for _ in range(self.random.randint(1, 2)):
            item, kind = self.aggregate(columns)
            made.append(Column(self.name(), kind))
            items.append(f"{item} AS {made[-1].name}")
        group = f" GROUP BY {', '.join(keys)}" if keys else ""
        having = f" HAVING {self.aggregate(columns)[0]} IS NOT NULL" if self.chance(0.2) else ""
        kinds = ["text" if column.kind == "key" else column.kind for column in made]
        shown = [Column(column.name, kind) for column, kind in zip(made, kinds, strict=True) if column.kind != "key"]
        query = f"SELECT {', '.join(items)} FROM {text}{where}{group}{having}"
        return query, shown

    def aggregate(self, columns: list[Column]) -> tuple[str, str]:
        condition = f" FILTER (WHERE {self.condition(columns, 1)})" if self.chance(0.2) else ""
        pick = self.random.randrange(6)
        if pick == 0:
            return f"COUNT(*){condition}", "int"
        kind = self.random.choice(KINDS)
        value = self.value(kind, columns, 1)
        if pick == 1:
            return f"COUNT({self.random.choice(('', 'DISTINCT '))}{value}){condition}", "int"
        if pick in (2, 3):
            return f"{self.random.choice(('MIN', 'MAX'))}({value}){condition}", kind
        kind = self.random.choice(("int", "exact"))
        value = self.value(kind, columns, 1)
        if pick == 4:
            return f"SUM({self.random.choice(('', '', 'DISTINCT '))}{value}){condition}", kind
        return f"AVG({value}){condition}", "float"

    def set_operation(self, depth: int) -> tuple[str, list[Column]]:
        kinds = [self.random.choice(("int", "text", "date", "exact")) for _ in range(self.random.randint(1, 2))]
        left, columns = self.select(depth - 1, kinds)
        # Of two kinds that compare, the one that holds both is the result's.
        others = [self.random.choice(COMPARABLE.get(kind, (kind,))[:2]) for kind in kinds]
        right, _ = self.select(depth - 1, others)
        wider = {("int", "exact"): "exact", ("date", "time"): "time"}
        made = zip(columns, kinds, others, strict=True)
        columns = [Column(column.name, wider.get((kind, other), kind)) for column, kind, other in made]
        word = self.random.choice(
            ("UNION", "UNION ALL", "UNION ALL", "EXCEPT", "INTERSECT", "EXCEPT ALL", "INTERSECT ALL")
        )
        return f"({left}) {word} ({right})", columns


_PATTERNS = ("'a%'", "'%b'", "'_'", "'%'", "'A'")
