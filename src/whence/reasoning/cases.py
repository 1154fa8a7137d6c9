"""The ways in which the variables of a query can be equal or ordered, each with values that show it.

Whatever compares values only by `=` and `<` cannot tell two valuations of the same case apart. A case that no values of the
type can show, such as three numbers between 1 and 3, is left out: numbers are not dense.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, count, pairwise
from string import ascii_lowercase

from whence.io.values import HIGHEST, LOWEST
from whence.lang.program import Const, Var
from whence.lang.types import FLOAT, SYMBOL, Kind, Tuple, Value
from whence.reasoning.queries import Conjunctive, Simple, holds, substituted

Fact = tuple[str, Tuple]
Constants = Mapping[Kind, Sequence[int | float | str]]
Valuation = Mapping[Var, Value]


@dataclass(frozen=True)
class Frozen:
    """A part with values for its variables: a bag of facts, and the tuple that they derive."""

    part: Conjunctive
    values: Valuation
    head: Tuple
    bag: Counter[Fact]


def freeze(part: Conjunctive, values: Valuation) -> Frozen:
    def value(term: Simple) -> Value:
        return values[term] if isinstance(term, Var) else term.value

    facts = Counter((name, tuple(map(value, args))) for name, args in part.atoms)
    return Frozen(part, values, tuple(map(value, part.head)), facts)


def satisfies(part: Conjunctive, values: Valuation) -> bool:
    def value(term: Simple) -> Value:
        return values[term] if isinstance(term, Var) else term.value

    return all(holds(op, value(left), value(right)) for op, left, right in part.comparisons)


def most_general(part: Conjunctive, constants: Constants) -> Frozen:
    """All variables different, and different from all constants."""
    fresh = {kind: _fresh(kind, constants.get(kind, ())) for kind in {each.kind for each in part.variables}}
    return freeze(part, {each: next(fresh[each.kind]) for each in part.variables})


def _fresh(kind: Kind, taken: Sequence[object]) -> Iterator[Value]:
    if kind == SYMBOL:
        names: Iterator[Value] = (f"{letter}{number or ''}" for number in count() for letter in ascii_lowercase)
    else:
        names = (float(number) if kind == FLOAT else number for number in count(1))
    return (each for each in names if each not in taken)


def cases(part: Conjunctive, constants: Constants, ordered: frozenset[Kind]) -> Iterator[Frozen]:
    """Every case of the part that its comparisons allow, those with few different values first of all.

    Variables of the kinds in `ordered` are put in order, the others only told apart.
    """
    for chains in _orders(part, constants, ordered):
        values: dict[Var, Value] = {}
        for kind, chain in chains.items():
            shown = _shown(chain, kind, ordered=kind in ordered)
            assert shown is not None
            for members, value in zip(chain, shown, strict=True):
                values |= {each: value for each in members.terms if isinstance(each, Var)}
        yield freeze(part, values)


def linearised(
    part: Conjunctive, constants: Constants, kinds: frozenset[Kind], ordered: frozenset[Kind]
) -> Iterator[Conjunctive]:
    """The part in every order of its variables of some kinds that its comparisons allow, each told by a chain of `<`.

    Equal variables become one. Where there is no order to tell, every two are compared by `!=`.
    """
    for chains in _orders(part, constants, ordered, kinds):
        terms: dict[Var, Simple] = {}
        compared: list[tuple[str, Simple, Simple]] = []
        for kind, chain in chains.items():
            for members in chain:
                terms |= {each: members.terms[0] for each in members.terms[1:] if isinstance(each, Var)}
            firsts = [members.terms[0] for members in chain]
            pairs = pairwise(firsts) if kind in ordered else combinations(firsts, 2)
            op = "<" if kind in ordered else "!="
            compared += [
                (op, left, right) for left, right in pairs if not (isinstance(left, Const) and isinstance(right, Const))
            ]
        yield substituted(replace(part, comparisons=tuple(compared)), terms)


def _orders(
    part: Conjunctive, constants: Constants, ordered: frozenset[Kind], kinds: frozenset[Kind] | None = None
) -> Iterator[Mapping[Kind, list[_Class]]]:
    """The classes of equal terms, in order, in every way; as they are until the next is asked for."""
    variables = [each for each in part.variables if kinds is None or each.kind in kinds]
    chains: dict[Kind, list[_Class]] = {each.kind: [] for each in variables}
    for kind, chain in chains.items():
        chain += [_Class([Const(value, kind)]) for value in constants.get(kind, ())]
    for _ in _placed(part, variables, chains, ordered):
        yield chains


@dataclass
class _Class:
    """Terms that have the same value."""

    terms: list[Simple]

    @property
    def constant(self) -> Value:
        first = self.terms[0]
        return first.value if isinstance(first, Const) else None


def _placed(
    part: Conjunctive, variables: list[Var], chains: Mapping[Kind, list[_Class]], ordered: frozenset[Kind]
) -> Iterator[None]:
    """Puts the variables into their chains in every way, which are then as the case is until the next is asked for."""
    if not variables:
        yield
        return
    variable, others = variables[0], variables[1:]
    chain, in_order = chains[variable.kind], variable.kind in ordered
    for members in list(chain):
        members.terms.append(variable)
        if _allowed(part, variable, chain):
            yield from _placed(part, others, chains, ordered)
        members.terms.pop()
    for at in range(len(chain) + 1) if in_order else [len(chain)]:
        chain.insert(at, _Class([variable]))
        if _allowed(part, variable, chain) and _shown(chain, variable.kind, ordered=in_order) is not None:
            yield from _placed(part, others, chains, ordered)
        del chain[at]


def _allowed(part: Conjunctive, variable: Var, chain: list[_Class]) -> bool:
    """Whether the comparisons of a variable with what is in the chain already are as they have to be."""
    at = {term: position for position, members in enumerate(chain) for term in members.terms}
    return all(
        holds(op, at[left], at[right])
        for op, left, right in part.comparisons
        if variable in (left, right) and left in at and right in at
    )


def _shown(chain: list[_Class], kind: Kind, *, ordered: bool) -> list[Value] | None:
    """Values for a chain, between the constants in it, or None if there are not enough."""
    if not ordered:
        fresh = _fresh(kind, [each.constant for each in chain])
        return [next(fresh) if each.constant is None else each.constant for each in chain]
    shown: list[Value] = []
    waiting, low = 0, None
    for members in [*chain, None]:
        high = None if members is None else members.constant
        if members is not None and high is None:
            waiting += 1
            continue
        between = _between(low, high, waiting, kind)  # type: ignore[arg-type]
        if between is None:
            return None
        shown += between
        if high is not None:
            shown.append(high)
        waiting, low = 0, high
    return shown


def _between(low: float | None, high: float | None, number: int, kind: Kind) -> list[Value] | None:
    """So many values between two, in order; None stands for no bound."""
    if not number:
        return []
    start = (1 if high is None else high - number) if low is None else low + 1
    if kind == FLOAT:
        step = 1.0 if low is None or high is None else (high - low) / (number + 1)
        start = low + step if low is not None else start
        values = [start + step * each for each in range(number)]
        chain = [each for each in (low, *values, high) if each is not None]
        return list(values) if all(a < b for a, b in pairwise(chain)) else None
    last = start + number - 1
    fits = LOWEST[kind] <= start and last <= HIGHEST[kind] and (high is None or last < high)
    return list(range(int(start), int(last) + 1)) if fits else None
