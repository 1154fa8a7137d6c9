"""Tree to text: parsing what is printed gives the tree that was printed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from types import UnionType

from whence.lang import tree

_LOOSEST_FIRST = ("lor", "lxor", "land", "bor", "bxor", "band", "bshl bshr bshru", "+ -", "* / %")
_BINARY = {op: strength for strength, ops in enumerate(_LOOSEST_FIRST) for op in ops.split()}
_UNARY = len(_LOOSEST_FIRST)
_POWER = _UNARY + 1
_TIGHTEST = _POWER + 1
_BINARY["^"] = _POWER
_PREFIX = {"-": "-", "bnot": "bnot ", "lnot": "lnot "}
_ESCAPES = str.maketrans({'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"})

Printable = tree.Term | tree.Formula | tree.Statement | tree.TypeRef


def print_module(module: tree.Module) -> str:
    return "".join(f"{_statement(statement)}\n" for statement in module.statements)


def print_node(node: Printable) -> str:
    if isinstance(node, tree.Term):
        return _term(node)
    if isinstance(node, tree.Formula):
        return _formula(node)
    return _type(node) if isinstance(node, tree.TypeRef) else _statement(node)


# -- terms ------------------------------------------------------------------------------------------------------------


def _term(term: tree.Term) -> str:
    match term:
        case tree.Variable(name):
            return name
        case tree.Wildcard():
            return "_"
        case tree.Number(value, suffix):
            return _float(value) if suffix == "." else f"{value}{suffix}"
        case tree.String(value):
            return _string(value)
        case tree.Bool(value):
            return "true" if value else "false"
        case tree.Nil():
            return "nil"
        case tree.Call():
            return _call(term)
        case tree.Bracket(items, None):
            return f"[{_terms(items)}]"
        case tree.Bracket(items, rest):
            assert rest is not None
            return f"[{_terms(items)} | {_term(rest)}]" if items else f"[| {_term(rest)}]"
        case tree.Branch(name, args):
            return f"${name}({_terms(args)})"
        case tree.Cast(inner, type_ref):
            return f"as({_term(inner)}, {_type(type_ref)})"
        case tree.Aggregate(op, target, body):
            return f"{op}{_target(target)} : {{ {_formula(body)} }}"


def _terms(terms: Iterable[tree.Term]) -> str:
    return ", ".join(map(_term, terms))


def _call(call: tree.Call) -> str:
    match call.args:
        case (operand,) if call.name in _PREFIX and not call.registered:
            text = _operand(operand, _UNARY)
            if call.name == "-" and (isinstance(operand, tree.Number) or text[0].isdigit()):
                text = f"({text})"  # or the minus sign would become part of the literal
            return _PREFIX[call.name] + text
        case (left, right) if call.name in _BINARY and not call.registered:
            strength = _BINARY[call.name]
            groups_right = strength == _POWER
            left_text = _operand(left, strength + 1 if groups_right else strength)
            return f"{left_text} {call.name} {_operand(right, strength if groups_right else strength + 1)}"
    return f"{'@' if call.registered else ''}{call.name}({_terms(call.args)})"


def _operand(term: tree.Term, floor: int) -> str:
    return _term(term) if _strength(term) >= floor else f"({_term(term)})"


def _strength(term: tree.Term) -> int:
    match term:
        case tree.Aggregate():
            return -1
        case tree.Number() if _term(term).startswith("-"):
            return _UNARY
        case tree.Call(name, args, registered=False) if len(args) == 2 and name in _BINARY:
            return _BINARY[name]
        case tree.Call(name, args, registered=False) if len(args) == 1 and name in _PREFIX:
            return _UNARY
    return _TIGHTEST


def _target(target: tree.Term | None) -> str:
    if target is None:
        return ""
    text = _term(target)
    # `sum (x + y) * 2 : …` would begin with a call of sum.
    return f" ({text})" if isinstance(target, tree.Aggregate) or text.startswith("(") else f" {text}"


def _string(value: str) -> str:
    return f'"{value.translate(_ESCAPES)}"'


def _float(value: float) -> str:
    return repr(float(value)).replace("e+", "e")


# -- formulas ---------------------------------------------------------------------------------------------------------


def _formula(formula: tree.Formula) -> str:
    match formula:
        case tree.Atom(relation, args, location):
            marked = ("@" * (at == location) + _term(arg) for at, arg in enumerate(args))
            return f"{relation}({', '.join(marked)})"
        case tree.Constraint("match" | "contains" as op, left, right):
            return f"{op}({_term(left)}, {_term(right)})"
        case tree.Constraint(op, left, right):
            return f"{_term(left)} {op} {_term(right)}"
        case tree.Truth(value):
            return "true" if value else "false"
        case tree.Not(item):
            return f"!{_item(item, tree.And | tree.Or)}"
        case tree.And(items):
            return ", ".join(_item(item, tree.And | tree.Or) for item in items)
        case tree.Or(items):
            return " ; ".join(_item(item, tree.Or) for item in items)


def _item(formula: tree.Formula, grouped: UnionType | type) -> str:
    return f"({_formula(formula)})" if isinstance(formula, grouped) else _formula(formula)


# -- statements -------------------------------------------------------------------------------------------------------


def _statement(statement: tree.Statement) -> str:
    match statement:
        case tree.TypeDecl(name, body):
            return f".type {name} {_type_body(body)}"
        case tree.RelationDecl():
            return _relation_decl(statement)
        case tree.FunctorDecl(name, params, result, stateful):
            return f".functor {name}({_types(params)}):{_type(result)}{' stateful' if stateful else ''}"
        case tree.Rule(heads, body, name, plan):
            head = ", ".join(map(_formula, heads))
            return f"{_label(name)}{head}{_body(body)}.{f' .plan {plan}' if plan is not None else ''}"
        case tree.Subsumption(dominated, dominating, body, name):
            return f"{_label(name)}{_formula(dominated)} <= {_formula(dominating)}{_body(body)}."
        case tree.Component():
            return _component(statement)
        case tree.Init(name, component):
            return f".init {name} = {_type(component)}"
        case tree.Override(relation):
            return f".override {relation}"
        case _:
            return _directive(statement)


def _directive(directive: tree.Directive | tree.Window | tree.Lifetime | tree.Pragma) -> str:
    match directive:
        case tree.Directive(kind, relations, params):
            settings = ", ".join(f"{key}={_string(value)}" for key, value in params)
            return f".{kind} {', '.join(relations)}{f'({settings})' if params else ''}"
        case tree.Window(relation):
            return f".window {relation}({', '.join(_window_settings(directive))})"
        case tree.Lifetime(relation, duration):
            return f".lifetime {relation} {_duration(duration)}"
        case tree.Pragma(key, value):
            return f".pragma {_string(key)}{'' if value is None else f' {_string(value)}'}"


def _label(name: str | None) -> str:
    return "" if name is None else f"{name}: "


def _body(body: tree.Formula | None) -> str:
    return "" if body is None else f" :- {_formula(body)}"


def _relation_decl(decl: tree.RelationDecl) -> str:
    text = f".decl {', '.join(decl.names)}({_attributes(decl.attributes)})"
    text += "".join(f" {qualifier}" for qualifier in decl.qualifiers)
    return text + (f" choice-domain {', '.join(map(_columns, decl.choices))}" if decl.choices else "")


def _columns(names: tuple[str, ...]) -> str:
    return names[0] if len(names) == 1 else f"({', '.join(names)})"


def _component(component: tree.Component) -> str:
    params = f"<{', '.join(component.params)}>" if component.params else ""
    bases = f" : {_types(component.bases)}" if component.bases else ""
    # Strings hold no line breaks once printed, so this indents nested components and nothing else.
    inner = "".join(f"\n{_statement(statement)}" for statement in component.statements).replace("\n", "\n    ")
    return f".comp {component.name}{params}{bases} {{{inner}\n}}"


def _window_settings(window: tree.Window) -> Iterator[str]:
    if window.time is not None:
        yield f"time={_duration(window.time)}"
    if window.rows is not None:
        yield f"rows={window.rows}"
    if window.by:
        yield f"by={_columns(window.by)}"


def _duration(value: float) -> str:
    return _float(value).removesuffix(".0")


# -- types ------------------------------------------------------------------------------------------------------------


def _type(ref: tree.TypeRef) -> str:
    return f"{ref.name}<{_types(ref.args)}>" if ref.args else ref.name


def _types(refs: Iterable[tree.TypeRef]) -> str:
    return ", ".join(map(_type, refs))


def _attributes(attributes: Iterable[tree.Attribute]) -> str:
    return ", ".join(f"{'@' * each.located}{each.name}:{_type(each.type)}" for each in attributes)


def _type_body(body: tree.TypeBody) -> str:
    match body:
        case tree.SubtypeOf(base):
            return f"<: {_type(base)}"
        case tree.UnionOf(members):
            return f"= {' | '.join(map(_type, members))}"
        case tree.RecordOf(fields):
            return f"= [{_attributes(fields)}]"
        case tree.BranchesOf(branches):
            return "= " + " | ".join(f"{each.name} {{{_attributes(each.fields)}}}" for each in branches)
