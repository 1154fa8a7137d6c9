"""Functions of SQL by name, and Python functions registered by the user."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime

from sqlglot import exp

from whence.lang import tree
from whence.lang.declare import decimal_of
from whence.lang.sql.dates import NAMED_PARTS, PARTS, last_day, unit_named
from whence.lang.sql.formulas import counted

# False comes before true.
AGGREGATES: Mapping[str, str] = {
    "COUNT": "count",
    "SUM": "sum",
    "AVG": "mean",
    **dict.fromkeys(("MIN", "BOOL_AND", "EVERY"), "min"),
    **dict.fromkeys(("MAX", "BOOL_OR"), "max"),
    **dict.fromkeys(("STRING_AGG", "GROUP_CONCAT", "LISTAGG"), "collect"),
}

# Aggregates of truth values.
TRUTHS = frozenset({"BOOL_AND", "BOOL_OR", "EVERY"})

_TYPE_NAMES: Mapping[object, str] = {
    int: "number",
    float: "float",
    str: "symbol",
    bool: "bool",
    date: "date",
    datetime: "timestamp",
}

_SQL_TYPES: Mapping[str, str] = {
    **dict.fromkeys(("TINYINT", "SMALLINT", "MEDIUMINT", "INT", "BIGINT"), "number"),
    **dict.fromkeys(("UTINYINT", "USMALLINT", "UMEDIUMINT", "UINT", "UBIGINT"), "unsigned"),
    **dict.fromkeys(("FLOAT", "DOUBLE"), "float"),
    "BOOLEAN": "bool",
    **dict.fromkeys(("TEXT", "VARCHAR", "NVARCHAR", "CHAR", "NCHAR", "NAME"), "symbol"),
    **dict.fromkeys(("DATE", "DATE32"), "date"),
    **dict.fromkeys(("TIMESTAMP", "TIMESTAMPNTZ", "TIMESTAMPTZ", "TIMESTAMPLTZ", "DATETIME"), "timestamp"),
    "TIME": "symbol",
}
# What DECIMAL is without digits, as in DuckDB.
_DEFAULT_DIGITS = (18, 3)
TYPES = "the types are BIGINT, BIGINT UNSIGNED, DOUBLE, DECIMAL(p,s) with at most 18 digits, BOOLEAN, DATE, TIMESTAMP and TEXT"

# Names that sqlglot takes for types of the user's own.
_OTHER_TYPES: Mapping[str, str] = {
    "FLOAT64": "float",
    "STRING": "symbol",
    **dict.fromkeys(("UBIGINT", "UINT64", "UINTEGER", "USMALLINT", "UTINYINT"), "unsigned"),
}

Term = tree.Term


@dataclass(frozen=True, slots=True)
class Builtin:
    """`most` is None if any number of arguments from `least` on will do."""

    least: int
    most: int | None
    make: Callable[[tuple[Term, ...]], Term]

    @property
    def arity(self) -> str:
        if self.most is None:
            return f"{self.least} or more arguments"
        return counted(self.least, "argument") if self.least == self.most else f"{self.least} or {self.most} arguments"

    def takes(self, count: int) -> bool:
        return self.least <= count and (self.most is None or count <= self.most)


def _call(name: str) -> Callable[[tuple[Term, ...]], Term]:
    return lambda args: args[0] if len(args) == 1 and name in ("cat", "min", "max") else tree.Call(name, args)


def _power(args: tuple[Term, ...]) -> Term:
    """A float, as in SQL, also of integers: POWER(2, -1) is a half."""
    return tree.Call("^", tuple(tree.Call("to_float", (arg,), span=arg.span) for arg in args))


def _magnitude(args: tuple[Term, ...]) -> Term:
    return tree.Call("max", (args[0], tree.Call("-", args)))


def _substring(args: tuple[Term, ...]) -> Term:
    """SQL counts characters from 1, `substr` from 0."""
    text, start = args[0], args[1]
    if isinstance(start, tree.Number):
        first: Term = tree.Number(start.value - 1, "", start.span)
    else:
        first = tree.Call("-", (start, tree.Number(1)))
    return tree.Call("substr", (text, first, args[2] if len(args) > 2 else tree.Call("strlen", (text,))))


def _of_float(name: str) -> Builtin:
    return Builtin(1, 1, lambda args: tree.Call(name, (tree.Call("to_float", args[:1], span=args[0].span),)))


BUILTINS: Mapping[str, Builtin] = {
    **{name.upper(): _of_float(name) for name in "sqrt exp sin cos tan asin acos atan".split()},
    "FLOOR": Builtin(1, 1, _call("floor")),
    **dict.fromkeys(("CEIL", "CEILING"), Builtin(1, 1, _call("ceil"))),
    "MAKE_DATE": Builtin(3, 3, _call("make_date")),
    "DATE": Builtin(1, 1, _call("to_date")),
    "LAST_DAY": Builtin(1, 1, lambda args: last_day(args[0])),
    **{name: Builtin(1, 1, lambda args, name=name: PARTS[unit_named(name)](args[0])) for name in NAMED_PARTS},  # type: ignore[misc]
    "LN": _of_float("log"),
    "POW": Builtin(2, 2, _power),
    "ABS": Builtin(1, 1, _magnitude),
    "CONCAT": Builtin(1, None, _call("cat")),
    "GREATEST": Builtin(1, None, _call("max")),
    "LEAST": Builtin(1, None, _call("min")),
    "MOD": Builtin(2, 2, _call("%")),
    "POWER": Builtin(2, 2, _power),
    "SUBSTR": Builtin(2, 3, _substring),
    "SUBSTRING": Builtin(2, 3, _substring),
    **dict.fromkeys(("LENGTH", "LEN", "CHAR_LENGTH", "CHARACTER_LENGTH"), Builtin(1, 1, _call("strlen"))),
}


def type_of(node: exp.Expr | None) -> str | None:
    """The type of Whence for a type of SQL, or None if it has none."""
    if not isinstance(node, exp.DataType) or node.args.get("nested"):
        return None
    kind = node.this
    name = kind.name if hasattr(kind, "name") else str(kind)
    if name == "USERDEFINED":
        return _OTHER_TYPES.get(str(node.args.get("kind")).upper())
    digits = [int(each.name) if each.name.isdecimal() else -1 for each in node.expressions]
    if name == "DECIMAL":
        precision, scale = (*digits, 0)[:2] if digits else _DEFAULT_DIGITS
        kind_name = f"decimal({precision},{scale})"
        return kind_name if len(digits) < 3 and decimal_of(kind_name) is not None else None
    if _SQL_TYPES.get(name) == "timestamp" and digits not in ([], [6]):
        return None  # fewer digits of a second would have to be cut off
    return _SQL_TYPES.get(name)


def find_registered(name: str, functions: Mapping[str, Callable[..., object]]) -> str | None:
    """The registered name that a call means: the same, or else the same but for the case of its letters."""
    if name in functions:
        return name
    return next((known for known in functions if known.lower() == name.lower()), None)


def declare(name: str, function: Callable[..., object]) -> tree.FunctorDecl | None:
    """The declaration that follows from the annotations, or None if they do not say everything."""
    try:
        signature = inspect.signature(function, eval_str=True)
    except (NameError, TypeError, ValueError):
        return None
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    positional = [each for each in signature.parameters.values() if each.kind in kinds]
    if len(positional) != len(signature.parameters):
        return None
    types = [_TYPE_NAMES.get(each.annotation) for each in positional]
    result = _TYPE_NAMES.get(signature.return_annotation)
    params = tuple(tree.TypeRef(each) for each in types if each is not None)
    if result is None or len(params) != len(types):
        return None
    return tree.FunctorDecl(name, params, tree.TypeRef(result))


_OF_THE_CLOCK = frozenset(
    "NOW CURRENT_DATE CURRENT_TIME CURRENT_TIMESTAMP LOCALTIME LOCALTIMESTAMP GETDATE SYSDATE TODAY".split()
)
_OF_CHANCE = frozenset("RANDOM RAND UUID GEN_RANDOM_UUID NEWID".split())


def advice_on_moving(name: str) -> str:
    """What to do instead of asking for a value that is another one each time; empty if the name is of no such function."""
    if name.upper() in _OF_THE_CLOCK:
        return "a view follows from its tables: keep the time in one, such as clock(today DATE), and update that"
    if name.upper() in _OF_CHANCE:
        return "a view follows from its tables: put such values into one where its rows are made"
    return ""
