"""Sums of conjunctive queries, positive and negative: what every query with differences comes to.

Two conjunctive queries are the same, wherever derivations are counted, if one is the other with its variables renamed. So each
is written in one form, and a sum says how often it has each form. Those that meet their opposite are gone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import count, islice
from operator import itemgetter
from string import ascii_lowercase
from typing import Any

from whence.lang.program import Const, Var
from whence.reasoning.cases import Constants, linearised
from whence.reasoning.queries import Compared, Conjunctive, Simple, constants_of, solved, substituted

Sum = Mapping[Conjunctive, int]
_Literal = tuple[str, tuple[Simple, ...]]
_Code = tuple[Any, ...]
_OPPOSITE = {"<": "<=", "<=": "<"}


def sum_of(parts: Iterable[Conjunctive], times: int = 1) -> dict[Conjunctive, int]:
    """How often the parts have each form, those with a minus counted down."""
    total: dict[Conjunctive, int] = {}
    for part in parts:
        form = form_of(part)
        total[form] = total.get(form, 0) + part.sign * times
    return {form: number for form, number in total.items() if number}


def added(*sums: Sum) -> dict[Conjunctive, int]:
    total: dict[Conjunctive, int] = {}
    for each in sums:
        for form, number in each.items():
            total[form] = total.get(form, 0) + number
    return {form: number for form, number in total.items() if number}


def negated(each: Sum) -> dict[Conjunctive, int]:
    return {form: -number for form, number in each.items()}


def linear_form(parts: Iterable[Conjunctive], constants: Constants) -> dict[Conjunctive, int]:
    """The sum with every order of variables and constants by itself: then even comparisons cancel out.

    Two queries have the same one, over the constants of both, exactly if they are the same for signed numbers.
    """
    every = tuple(parts)
    compared = [(op, one.kind) for part in every for op, one, _ in part.comparisons]
    kinds = frozenset(kind for _, kind in compared)
    ordered = frozenset(kind for op, kind in compared if op != "!=")
    return sum_of(case for part in every for case in linearised(part, constants, kinds, ordered))


def same(left: Iterable[Conjunctive], right: Iterable[Conjunctive]) -> bool:
    """Whether two queries are the same for signed numbers, and so for signed polynomials."""
    one, other = tuple(left), tuple(right)
    if not any(part.comparisons for part in (*one, *other)):
        return sum_of(one) == sum_of(other)
    constants = constants_of((*one, *other))
    turned = tuple(replace(part, sign=-part.sign) for part in other)
    return not linear_form(one + turned, constants)


def merged(each: Sum) -> dict[Conjunctive, int]:
    """The sum with fewer parts where a comparison and its opposite make a whole: A where x < y, and A where y <= x, are A."""
    total = dict(each)
    pending = list(total)
    while pending:
        form = pending.pop()
        for at in range(len(form.comparisons)):
            number = total.get(form, 0)
            if not number:
                break
            step = 1 if number > 0 else -1
            whole, opposite = _split(form, at)
            if opposite is not None and opposite != whole and total.get(opposite, 0) * step > 0:
                changes = [{form: -step}, {opposite: -step}, {whole: step}]
            elif total.get(whole, 0) * step < 0:  # A less A where c is A where not c
                changes = [{form: -step}, {whole: step}] + ([] if opposite is None else [{opposite: -step}])
            elif (narrower := _narrower(form, at, step, total)) is not None:
                changes = [{form: -step}, {narrower[0]: step}, {narrower[1]: step}]
            else:
                continue
            total = added(total, *changes)
            pending += [each for change in changes for each in change]
            break
    return total


def _narrower(form: Conjunctive, at: int, step: int, total: Sum) -> tuple[Conjunctive, Conjunctive] | None:
    """A form of the sum with the opposite sign that asks for more, by another constant, and what is left if it is taken away."""
    op, left, right = form.comparisons[at]
    if op == "!=" or isinstance(left, Const) == isinstance(right, Const):
        return None
    others = form.comparisons[:at] + form.comparisons[at + 1 :]
    for other in {each for one in total for each in one.comparisons if each[0] != "!="}:
        bound = next((each for each in other[1:] if isinstance(each, Const)), None)
        if bound is None or isinstance(other[1], Const) != isinstance(left, Const):
            continue
        asked = (other[0], bound, right) if isinstance(left, Const) else (other[0], left, bound)
        tighter = form_of(replace(form, comparisons=(*others, asked)))
        if total.get(tighter, 0) * step >= 0 or not _implies(asked, form.comparisons[at]):
            continue
        opposite = (_OPPOSITE[asked[0]], asked[2], asked[1])
        return tighter, form_of(replace(form, comparisons=(*form.comparisons, opposite)))
    return None


def _implies(one: Compared, other: Compared) -> bool:
    """Whether a bound on a variable is at least as tight as another one from the same side."""
    (op, *sides), (wide, *bounds) = one, other
    inner, outer = (next(each.value for each in pair if isinstance(each, Const)) for pair in (sides, bounds))
    if inner == outer:
        return op == "<" or wide == "<="
    return (outer < inner) if isinstance(sides[0], Const) else (inner < outer)  # type: ignore[operator]


def _split(form: Conjunctive, at: int) -> tuple[Conjunctive, Conjunctive | None]:
    """The form without one of its comparisons, and with the opposite of it; None if that can never hold."""
    op, left, right = form.comparisons[at]
    others = form.comparisons[:at] + form.comparisons[at + 1 :]
    whole = replace(form, comparisons=others)
    if op == "!=":
        opposite = solved(whole, [(left, right)])
    else:
        opposite = solved(replace(form, comparisons=(*others, (_OPPOSITE[op], right, left))), ())
    return form_of(whole), None if opposite is None else form_of(opposite)


# -- one form for all ways to name variables and to order atoms --------------------------------------------------------


def form_of(part: Conjunctive) -> Conjunctive:
    """The part with names and an order that depend on nothing but what it says; its sign and its rule are left out.

    Variables of the head are told apart by where they stand in it. The others are told apart by what they are joined with,
    round by round; where that leaves some alike, each is tried as the first of them. What is connected by nothing but variables
    of the head is looked at apart, so that equal groups do not multiply.
    """
    numbers: dict[Var, int] = {}
    for term in part.head:
        if isinstance(term, Var):
            numbers.setdefault(term, len(numbers))
    literals: list[_Literal] = list(part.atoms)
    for op, *sides in dict.fromkeys(part.comparisons):
        literals.append((f" {op}", tuple(sides)))
        if op == "!=":
            literals.append((f" {op}", tuple(reversed(sides))))
    groups = [_Group(each, dict(numbers)).code() for each in _connected(literals, numbers)]
    for _, order in sorted(groups, key=itemgetter(0)):
        for each in order:
            numbers[each] = len(numbers)
    names = list(islice(form_names(), len(numbers)))
    renamed = substituted(part, {each: Var(names[number], each.kind) for each, number in numbers.items()})
    places = {Var(names[number], each.kind): number for each, number in numbers.items()}

    def key(literal: _Literal) -> _Code:
        return literal[0], tuple(_code(arg, places, {}) for arg in literal[1])

    def turned(op: str, left: Simple, right: Simple) -> Compared:
        is_turned = op == "!=" and _code(right, places, {}) < _code(left, places, {})
        return (op, right, left) if is_turned else (op, left, right)

    compared = {turned(*each) for each in renamed.comparisons}
    return Conjunctive(
        "",
        renamed.head,
        tuple(sorted(renamed.atoms, key=key)),
        tuple(sorted(compared, key=lambda each: key((each[0], each[1:])))),
    )


def form_names() -> Iterator[str]:
    """x, y, z, then u, v, w, then the others, then with numbers."""
    letters = [*"xyzuvw", *(each for each in ascii_lowercase if each not in "xyzuvw")]
    return (f"{letter}{number or ''}" for number in count() for letter in letters)


def _connected(literals: list[_Literal], fixed: Mapping[Var, int]) -> list[list[_Literal]]:
    """The literals by what they share besides fixed variables."""
    groups: list[tuple[list[_Literal], set[Var]]] = []
    for literal in literals:
        together, free = [literal], {each for each in literal[1] if isinstance(each, Var) and each not in fixed}
        apart = []
        for members, variables in groups:
            if variables & free:
                together, free = members + together, free | variables
            else:
                apart.append((members, variables))
        groups = [*apart, (together, free)]
    return [members for members, _ in groups]


def _code(term: Simple, fixed: Mapping[Var, int], colours: Mapping[Var, int]) -> _Code:
    if isinstance(term, Const):
        return "constant", str(term.kind), repr(term.value)
    return ("fixed", fixed[term]) if term in fixed else ("variable", colours[term], str(term.kind))


@dataclass(frozen=True)
class _Group:
    """Literals that are connected, and the variables that have numbers already."""

    literals: list[_Literal]
    fixed: Mapping[Var, int]

    def code(self) -> tuple[_Code, list[Var]]:
        """What the literals say in the best order of their variables, and that order."""
        variables = {
            each: 0 for _, args in self.literals for each in args if isinstance(each, Var) and each not in self.fixed
        }
        return self._best(variables)

    def _best(self, colours: dict[Var, int]) -> tuple[_Code, list[Var]]:
        colours = self._refined(colours)
        classes: dict[int, list[Var]] = {}
        for each, colour in colours.items():
            classes.setdefault(colour, []).append(each)
        alike = min((colour for colour, members in classes.items() if len(members) > 1), default=None)
        if alike is None:
            return self._coded(colours), sorted(colours, key=colours.__getitem__)
        tried: list[Var] = []
        found = []
        for each in classes[alike]:
            if not any(self._are_twins(each, other) for other in tried):
                tried.append(each)
                found.append(self._best(colours | {each: -1}))
        return min(found, key=itemgetter(0))

    def _refined(self, colours: dict[Var, int]) -> dict[Var, int]:
        while True:
            signs: dict[Var, list[_Code]] = {each: [] for each in colours}
            for name, args in self.literals:
                codes = tuple(_code(arg, self.fixed, colours) for arg in args)
                for at, arg in enumerate(args):
                    if isinstance(arg, Var) and arg in signs:
                        signs[arg].append((name, at, codes))
            told = {each: (colours[each], sorted(sign)) for each, sign in signs.items()}
            ranks = {repr(sign): number for number, sign in enumerate(sorted(told.values()))}
            refined = {each: ranks[repr(sign)] for each, sign in told.items()}
            if len(set(refined.values())) == len(set(colours.values())):
                return refined
            colours = refined

    def _coded(self, colours: Mapping[Var, int]) -> _Code:
        return tuple(
            sorted((name, tuple(_code(arg, self.fixed, colours) for arg in args)) for name, args in self.literals)
        )

    def _are_twins(self, one: Var, other: Var) -> bool:
        """Whether nothing tells two variables apart."""
        swapped: dict[Simple, Simple] = {one: other, other: one}
        turned = Counter((name, tuple(swapped.get(arg, arg) for arg in args)) for name, args in self.literals)
        return turned == Counter(self.literals)
