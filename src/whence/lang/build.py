"""The parser's actions: what each production of the grammar makes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from lark import Token, Transformer

from whence.lang import tree
from whence.lang.aggregates import AGGREGATES
from whence.lang.diagnostics import BadAggregate, BadLiteral, BadWindow, Diagnostic, MisplacedLocation, NotALiteral
from whence.lang.tree import Span

_ESCAPES = {
    '"': '"',
    "\\": "\\",
    "n": "\n",
    "t": "\t",
    "r": "\r",
    "b": "\b",
    "f": "\f",
    "v": "\v",
    "a": "\a",
    "0": "\0",
}
_TOO_LARGE = 1 << 64
_CONSTRAINT_CALLS = frozenset({"match", "contains"})
_EQUALS = frozenset({"==", ":="})
_LOOSEST_FIRST = ("lor", "lxor", "land", "bor", "bxor", "band", "bshl bshr bshru", "+ -", "* / %", "^ **")
_STRENGTH = {op: strength for strength, ops in enumerate(_LOOSEST_FIRST) for op in ops.split()}


class _Located:
    """An argument written `@x`, until the atom around it takes note."""

    __slots__ = ("span", "term")

    def __init__(self, term: tree.Term, span: Span) -> None:
        self.term = term
        self.span = span


class _CallSyntax:
    """`name(args)` before it is known whether it is an atom or a term."""

    __slots__ = ("args", "name", "span")

    def __init__(self, name: str, args: tuple[Any, ...], span: Span) -> None:
        self.name = name
        self.args = args
        self.span = span


def _span(items: Sequence[Any]) -> Span:
    """From the first to the last child that is there. The grammar keeps the tokens that delimit a production."""
    start = end = None
    for item in items:
        if item is not None:
            start = item
            break
    for item in reversed(items):
        if item is not None:
            end = item
            break
    return Span(_start(start), _end(end))


def _start(item: Any) -> int:
    if isinstance(item, Token):
        return item.start_pos or 0
    return _start(item[0]) if isinstance(item, list | tuple) and not isinstance(item, Span) else item.span.start


def _end(item: Any) -> int:
    if isinstance(item, Token):
        return item.end_pos or 0
    return _end(item[-1]) if isinstance(item, list | tuple) and not isinstance(item, Span) else item.span.end


class TreeBuilder(Transformer[Token, tree.Module]):
    """Called by the parser at each reduction. `found` holds what is wrong although it parses."""

    def __init__(self) -> None:
        super().__init__()
        self.text = ""
        self.found: list[Diagnostic] = []

    def begin(self, text: str) -> None:
        """To be called before each parse."""
        self.text, self.found = text, []

    def start(self, items: list[Any]) -> tree.Module:
        return tree.Module(self._statements(items))

    def _statements(self, items: Sequence[Any]) -> tuple[tree.Statement, ...]:
        """The statements, each `.plan` joined to the rule before it."""
        result: list[tree.Statement] = []
        for item in items:
            if isinstance(item, str):
                if result and isinstance(result[-1], tree.Rule):
                    rule = result[-1]
                    result[-1] = tree.Rule(rule.heads, rule.body, rule.name, item, rule.span)
            elif item is not None:
                result.append(item)
        return tuple(result)

    # -- clauses

    def clause(self, items: list[Any]) -> tree.Rule | None:
        name, heads, body, _ = items
        atoms = tuple(self._atom(head) for head in heads)
        return tree.Rule(atoms, body, name and str(name), None, _span(items))

    def subsumption(self, items: list[Any]) -> tree.Subsumption:
        name, dominated, dominating, body, _ = items
        return tree.Subsumption(self._atom(dominated), self._atom(dominating), body, name and str(name), _span(items))

    def rule_name(self, items: list[Token]) -> Token:
        return items[0]

    def heads(self, items: list[_CallSyntax]) -> list[_CallSyntax]:
        return items

    def plan(self, items: list[str]) -> str:
        return ", ".join(items)

    def plan_order(self, items: list[Token]) -> str:
        version, *order = filter(None, items)
        return f"{version}:({', '.join(order)})"

    # -- formulas

    def disjunction(self, items: list[tree.Formula]) -> tree.Formula:
        return items[0] if len(items) == 1 else tree.Or(tuple(items), _span(items))

    def conjunction(self, items: list[tree.Formula]) -> tree.Formula:
        return items[0] if len(items) == 1 else tree.And(tuple(items), _span(items))

    def grouped(self, items: list[tree.Formula]) -> tree.Formula:
        return items[0]

    def negation(self, items: list[tree.Formula]) -> tree.Formula:
        return tree.Not(items[1], _span(items))

    def constraint(self, items: list[Any]) -> tree.Formula:
        left, op, right = items
        symbol = "=" if op in _EQUALS else str(op)
        return tree.Constraint(symbol, self._term(left), self._term(right), _span(items))

    def proposition(self, items: list[Any]) -> tree.Formula:
        item = items[0]
        if isinstance(item, tree.Truth):
            return item
        if isinstance(item, _CallSyntax):
            if item.name in _CONSTRAINT_CALLS and len(item.args) == 2:
                left, right = (self._term(arg) for arg in item.args)
                return tree.Constraint(item.name, left, right, item.span)
            return self._atom(item)
        if isinstance(item, tree.Call) and item.name in AGGREGATES:
            return tree.Atom(item.name, item.args, None, item.span)
        self.found.append(NotALiteral(_span(items), what=self._quoted(_span(items))))
        return tree.Truth(True, _span(items))

    def _atom(self, call: _CallSyntax) -> tree.Atom:
        location = None
        args: list[tree.Term] = []
        for index, arg in enumerate(call.args):
            if isinstance(arg, _Located):
                if location is not None:
                    self.found.append(MisplacedLocation(arg.span, problem="an atom has one location"))
                location = index
            args.append(self._term(arg.term if isinstance(arg, _Located) else arg))
        return tree.Atom(call.name, tuple(args), location, call.span)

    # -- terms

    def _term(self, item: Any) -> tree.Term:
        """The item as a term; a call in term position is a functor."""
        if isinstance(item, _CallSyntax):
            return tree.Call(item.name, self._terms(item.args), False, item.span)
        if isinstance(item, _Located):
            self.found.append(MisplacedLocation(item.span, problem="a functor has no location"))
            return item.term
        if isinstance(item, tree.Truth):
            return tree.Bool(item.value, item.span)
        return item  # type: ignore[no-any-return]

    def _quoted(self, span: Span) -> str:
        text = " ".join(self.text[span.start : span.end].split())
        return text if len(text) <= 30 else f"{text[:27]}…"

    def _terms(self, items: Sequence[Any] | None) -> tuple[tree.Term, ...]:
        return tuple(self._term(item) for item in items or ())

    def args(self, items: list[Any]) -> list[Any]:
        return items

    def located(self, items: list[Any]) -> _Located:
        return _Located(items[1], _span(items))

    def call(self, items: list[Any]) -> _CallSyntax:
        # What is inside a call is a term, whether the call itself is one or not.
        args = tuple(self._term(arg) if isinstance(arg, _CallSyntax) else arg for arg in items[1] or ())
        return _CallSyntax(str(items[0]), args, _span(items))

    def compound(self, items: list[Any]) -> tree.Term:
        """Nests a flat sequence of operators and operands by their strength (the shunting-yard algorithm)."""
        operands: list[tree.Term] = []
        operators: list[tuple[Token, bool]] = []
        after_operand = False
        for item in items:
            if not isinstance(item, Token):
                operands.append(self._term(item))
            elif after_operand:
                while operators and self._goes_first(operators[-1], item):
                    self._apply(*operators.pop(), operands)
                operators.append((item, True))
            else:
                operators.append((item, False))
            after_operand = not isinstance(item, Token)
        while operators:
            self._apply(*operators.pop(), operands)
        (term,) = operands
        return term

    def _goes_first(self, waiting: tuple[Token, bool], following: Token) -> bool:
        """Whether an operator on the left takes the operand between it and an infix operator."""
        operator, is_infix = waiting
        if not is_infix:
            # A prefix operator takes everything that binds tighter than itself: -x ^ 2 is -(x ^ 2).
            return _STRENGTH[following] < _STRENGTH["^"]
        if _STRENGTH[operator] == _STRENGTH[following]:
            return _STRENGTH[operator] < _STRENGTH["^"]  # x ^ y ^ z is x ^ (y ^ z)
        return _STRENGTH[operator] > _STRENGTH[following]

    def _apply(self, operator: Token, is_infix: bool, operands: list[tree.Term]) -> None:
        right = operands.pop()
        if is_infix:
            left = operands.pop()
            name = "^" if operator == "**" else str(operator)
            operands.append(tree.Call(name, (left, right), False, Span(left.span.start, right.span.end)))
            return
        span = Span(operator.start_pos or 0, right.span.end)
        if operator == "-" and isinstance(right, tree.Number) and right.suffix != "u":
            between = self.text[operator.end_pos : right.span.start]
            if not between.strip():  # a sign in front of a literal, not of a parenthesis
                operands.append(tree.Number(-right.value, right.suffix, span))
                return
        operands.append(tree.Call(str(operator), (right,), False, span))

    def variable(self, items: list[Token]) -> tree.Variable:
        return tree.Variable(str(items[0]), _span(items))

    def wildcard(self, items: list[Token]) -> tree.Wildcard:
        return tree.Wildcard(_span(items))

    def integer(self, items: list[Token]) -> tree.Number:
        return tree.Number(self._integer(items[0]), "", _span(items))

    def unsigned(self, items: list[Token]) -> tree.Number:
        return tree.Number(self._integer(items[0]), "u", _span(items))

    def _integer(self, token: Token) -> int:
        digits = str(token).rstrip("u").lstrip("0") or "0"
        base = {"x": 16, "b": 2}.get(digits[0], 10)
        digits = digits if base == 10 else digits[1:]
        # Python refuses to read integers of thousands of digits, and 64 bits are at most 64 digits.
        value = int(digits, base) if len(digits) <= 64 or base != 10 else _TOO_LARGE
        if value >= _TOO_LARGE:
            self._refuse_number(token, "does not fit in 64 bits", "use a float or a symbol")
            return 0
        return value

    def real(self, items: list[Token]) -> tree.Number:
        return tree.Number(self._float(items[0]), ".", _span(items))

    def _float(self, token: Token) -> float:
        value = float(token)
        if value == float("inf"):
            self._refuse_number(token, "is too large for a float", "the largest is about 1.8e308")
            return 0.0
        return value

    def _refuse_number(self, token: Token, problem: str, advice: str) -> None:
        literal = str(token) if len(token) <= 30 else f"{token[:27]}…"
        self.found.append(BadLiteral(_span([token]), literal=literal, problem=problem, advice=advice))

    def ipv4(self, items: list[Token]) -> tree.Number:
        parts = [int(part[:4]) for part in items[0].split(".")]
        if max(parts) > 255:
            self._refuse_number(items[0], "is not an address", "each part is at most 255")
            return tree.Number(0, "", _span(items))
        return tree.Number(
            sum(part << shift for part, shift in zip(parts, (24, 16, 8, 0), strict=True)), "", _span(items)
        )

    def string(self, items: list[Token]) -> tree.String:
        return tree.String(self._unquote(items[0]), _span(items))

    def _unquote(self, token: Token) -> str:
        raw = str(token)[1:-1]
        return raw if "\\" not in raw else re.sub(r"\\(.)", self._unescape, raw, flags=re.DOTALL)

    def _unescape(self, match: re.Match[str]) -> str:
        # An unknown escape keeps its backslash: regular expressions are written in strings.
        return _ESCAPES.get(match[1], match[0])

    def nil(self, items: list[Any]) -> tree.Nil:
        return tree.Nil(_span(items))

    def true(self, items: list[Any]) -> tree.Truth:
        return tree.Truth(True, _span(items))

    def false(self, items: list[Any]) -> tree.Truth:
        return tree.Truth(False, _span(items))

    def cast(self, items: list[Any]) -> tree.Cast:
        return tree.Cast(self._term(items[1]), items[2], _span(items))

    def branch(self, items: list[Any]) -> tree.Branch:
        return tree.Branch(str(items[1]), self._terms(items[2]), _span(items))

    def bracket(self, items: list[Any]) -> tree.Bracket:
        _, elements, rest, _ = items
        return tree.Bracket(self._terms(elements), None if rest is None else self._term(rest), _span(items))

    def registered(self, items: list[Any]) -> tree.Call:
        return tree.Call(str(items[1]), self._terms(items[2]), True, _span(items))

    def aggregate_call(self, items: list[Any]) -> tree.Call:
        name, first, *rest, _ = items
        return tree.Call(str(name), self._terms([first, *(rest[0] if rest else ())]), False, _span(items))

    def aggregate(self, items: list[Any]) -> tree.Aggregate:
        op, target, body = items
        if op == "count" and target is not None:
            span, problem = self._term(target).span, "takes no target"
            self.found.append(BadAggregate(span, op=op, problem=problem, advice="write count : { … }"))
        elif op != "count" and target is None:
            problem, advice = "needs a target", f"write {op} x : {{ … }}"
            self.found.append(BadAggregate(_span(items), op=op, problem=problem, advice=advice))
            target = tree.Number(0)
        return tree.Aggregate(str(op), None if op == "count" else self._term(target), body[0], _span(items))

    def aggregate_body(self, items: list[Any]) -> tuple[tree.Formula, Token]:
        formula, brace = items
        return formula, brace

    def atom_body(self, items: list[_CallSyntax]) -> tuple[tree.Formula]:
        return (self._atom(items[0]),)

    # -- types and declarations

    def qname(self, items: list[Token]) -> Token:
        return Token("QNAME", ".".join(items), items[0].start_pos, end_pos=items[-1].end_pos)

    def type_ref(self, items: list[Any]) -> tree.TypeRef:
        name, *args = items
        return tree.TypeRef(str(name), tuple(arg for arg in args if arg is not None), _span(items))

    def sized_type(self, items: list[Any]) -> tree.TypeRef:
        name, digits, behind, _, nullable = items
        return tree.TypeRef(f"{name}({digits},{behind}){nullable or ''}", (), _span(items))

    def attribute(self, items: list[Any]) -> tree.Attribute:
        at, name, type_ref = items
        return tree.Attribute(str(name), type_ref, at is not None, _span(items))

    def attributes(self, items: list[tree.Attribute]) -> tuple[tree.Attribute, ...]:
        return tuple(items)

    def subtype(self, items: list[Any]) -> tree.TypeDecl:
        return tree.TypeDecl(str(items[1]), tree.SubtypeOf(items[2]), _span(items))

    def number_type(self, items: list[Any]) -> tree.TypeDecl:
        return tree.TypeDecl(str(items[1]), tree.SubtypeOf(tree.TypeRef("number", (), _span(items))), _span(items))

    def symbol_type(self, items: list[Any]) -> tree.TypeDecl:
        return tree.TypeDecl(str(items[-1]), tree.SubtypeOf(tree.TypeRef("symbol", (), _span(items))), _span(items))

    def union(self, items: list[Any]) -> tree.TypeDecl:
        return tree.TypeDecl(str(items[1]), tree.UnionOf(tuple(items[2:])), _span(items))

    def record(self, items: list[Any]) -> tree.TypeDecl:
        return tree.TypeDecl(str(items[1]), tree.RecordOf(items[2] or ()), _span(items))

    def branches(self, items: list[Any]) -> tree.TypeDecl:
        return tree.TypeDecl(str(items[1]), tree.BranchesOf(tuple(items[2:])), _span(items))

    def branch_decl(self, items: list[Any]) -> tree.BranchDecl:
        return tree.BranchDecl(str(items[0]), items[1] or (), _span(items))

    def qnames(self, items: list[Any]) -> tuple[str, ...]:
        return tuple(str(item) for item in items)

    def names(self, items: list[Token]) -> tuple[Token, ...]:
        return tuple(items)

    def qualifier(self, items: list[Token]) -> Token:
        return items[0]

    def choice(self, items: list[Token]) -> tuple[Token, ...]:
        return tuple(items)

    def relation_decl(self, items: list[Any]) -> tree.RelationDecl:
        _, names, attributes, _, *rest = items
        qualifiers = tuple(str(item) for item in rest if isinstance(item, Token))
        choices = tuple(tuple(str(key) for key in item) for item in rest if isinstance(item, tuple))
        return tree.RelationDecl(
            tuple(str(name) for name in names), attributes or (), qualifiers, choices, _span(items)
        )

    def param(self, items: list[Any]) -> tree.TypeRef:
        return items[1]  # type: ignore[no-any-return]

    def params(self, items: list[tree.TypeRef]) -> tuple[tree.TypeRef, ...]:
        return tuple(items)

    def functor_decl(self, items: list[Any]) -> tree.FunctorDecl:
        _, name, params, result, stateful = items
        return tree.FunctorDecl(str(name), params or (), result, stateful is not None, _span(items))

    # -- directives

    def directive(self, items: list[Any]) -> tree.Directive:
        kind, *rest = items
        names = [item for item in rest if isinstance(item, Token)]
        settings: list[tuple[str, str, Span]] = next((item for item in rest if isinstance(item, list)), [])
        return tree.Directive(
            str(kind)[1:],
            tuple(str(name) for name in names),
            tuple((key, value) for key, value, _ in settings),
            _span([kind, *names]),
            tuple(_span([name]) for name in names),
            tuple(span for _, _, span in settings),
        )

    def settings(self, items: list[tuple[str, str, Span]]) -> list[tuple[str, str, Span]]:
        return items

    def setting(self, items: list[Any]) -> tuple[str, str, Span]:
        return str(items[0]), items[1], _span(items[:1])

    def value(self, items: list[Any]) -> str:
        item = items[0]
        if isinstance(item, Token) and item.type == "STRING":
            return self._unquote(item)
        return f"{item:g}" if isinstance(item, float) else str(item)

    def signed_number(self, items: list[Any]) -> int | float:
        sign, token = items
        value = self._integer(token) if token.type == "INT" else self._float(token)
        return -value if sign is not None else value

    def window_setting(self, items: list[Any]) -> tuple[str, Any, Span]:
        name, *values = items
        value = values[0] if isinstance(values[0], int | float) else tuple(str(each) for each in values)
        return str(name), value, Span(name.start_pos or 0, name.end_pos or 0)

    def window(self, items: list[Any]) -> tree.Window | None:
        _, relation, *settings, _ = items
        chosen: dict[str, Any] = {}
        for name, value, span in settings:
            if (
                (name == "time" and isinstance(value, int | float))
                or (name == "rows" and isinstance(value, int))
                or (name == "by" and isinstance(value, tuple))
            ):
                chosen[name] = value
            else:
                problem = f"a window has no such setting {name}"
                advice = "write time=30, or rows=4, or rows=4, by=column"
                self.found.append(BadWindow(span, problem=problem, advice=advice))
                return None
        time, rows, by = chosen.get("time"), chosen.get("rows"), chosen.get("by", ())
        when = None if time is None else float(time)
        return tree.Window(str(relation), when, rows, by, _span(items), _span([relation]))

    def lifetime(self, items: list[Any]) -> tree.Lifetime:
        return tree.Lifetime(str(items[1]), float(items[2]), _span(items[:2]), _span(items[1:2]))

    def pragma(self, items: list[Any]) -> tree.Pragma:
        _, key, value = items
        return tree.Pragma(self._unquote(key), None if value is None else self._unquote(value), _span(items))

    def component(self, items: list[Any]) -> tree.Component:
        _, name, params, *rest, _ = items
        bases = tuple(item for item in rest if isinstance(item, tree.TypeRef))
        statements = self._statements([item for item in rest if not isinstance(item, tree.TypeRef)])
        return tree.Component(str(name), tuple(str(param) for param in params or ()), bases, statements, _span(items))

    def init(self, items: list[Any]) -> tree.Init:
        return tree.Init(str(items[1]), items[2], _span(items))

    def override(self, items: list[Token]) -> tree.Override:
        return tree.Override(str(items[1]), _span(items))
