"""Positive Boolean annotations as binary decision diagrams: canonical, so that absorption happens by itself.

A diagram asks for variables in a fixed order of *levels*. Which order decides how large diagrams get, and nothing else: a token
is given a level when it is placed, between those of its neighbours, and all levels are dealt out anew when there is no room.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Generic, TypeVar

from biodivine_aeon import Bdd, BddPointer, BddVariable, BddVariableSet

from whence.semiring.algebra import NotInThisSemiring, Properties, Semiring
from whence.semiring.tokens import show_token
from whence.semiring.witnesses import Witnesses, minimal

Token = TypeVar("Token", bound=Hashable)
T = TypeVar("T")
# The library numbers variables with 16 bits.
MOST_VARIABLES = 65_000
_APART = 8  # levels that are left free for each token, if there is room


class FormulaDiagrams(Semiring[Bdd], Generic[Token]):
    """The lattice of positive Boolean functions of the tokens that have been placed.

    >>> diagrams = FormulaDiagrams(["p", "q", "r"])
    >>> p, q = diagrams.literal("p"), diagrams.literal("q")
    >>> diagrams.plus(p, diagrams.times(p, q)) == p
    True
    """

    name = "bdd"
    properties = Properties(idempotent=True, absorptive=True, lattice=True, positive=True, continuous=True, stable=True)

    def __init__(self, order: Sequence[Token] = (), *, newest_first: bool = False) -> None:
        self.capacity = 0
        self.newest_first = newest_first  # diagrams ask for tokens from the end of the order
        self.levels: dict[Token, int] = {}
        self.tokens: dict[BddVariable, Token] = {}
        self.deal_out(order, [])

    def plus(self, left: Bdd, right: Bdd, /) -> Bdd:
        return left.l_or(right)

    def times(self, left: Bdd, right: Bdd, /) -> Bdd:
        return left.l_and(right)

    def leq(self, left: Bdd, right: Bdd, /) -> bool:
        return left.l_and_not(right).is_false()

    def contains(self, value: object, /) -> bool:
        return isinstance(value, Bdd)

    def literal(self, token: Token) -> Bdd:
        return self._set.mk_literal(self._variables[self.levels[token]], True)

    def format(self, value: Bdd, /) -> str:
        words = sorted(" & ".join(sorted(map(show_token, each))) or "true" for each in self.witnesses(value))
        return " | ".join(words) or "false"

    # -- questions

    def token_of(self, variable: int) -> Token:
        """The token that a variable stands for, by the number that the library gives it."""
        return self.tokens[self._ids[variable]]

    def support(self, value: Bdd) -> list[Token]:
        """The tokens that matter to a value."""
        return [self.tokens[each] for each in value.support_set()]

    def size(self, value: Bdd) -> int:
        """The nodes of a diagram that ask for a variable."""
        return max(0, value.node_count() - 2)

    def witnesses(self, value: Bdd) -> Witnesses:
        """The smallest sets of tokens that are enough."""
        enough: Witnesses = frozenset((frozenset(),))

        def either(token: Token, low: Witnesses, high: Witnesses) -> Witnesses:
            return minimal(low | {each | {token} for each in high})

        return self._fold(value, enough, frozenset(), either, self.tokens)

    def probability(self, value: Bdd, odds: Mapping[Token, float]) -> float:
        """How likely the function is true if each token is there independently, with these odds."""

        def weigh(token: Token, low: float, high: float) -> float:
            return odds[token] * high + (1 - odds[token]) * low

        return self._fold(value, 1.0, 0.0, weigh, self.tokens)

    def _fold(
        self, value: Bdd, true: T, false: T, combine: Callable[[Token, T, T], T], tokens: Mapping[BddVariable, Token]
    ) -> T:
        """Bottom up: what each node is, given its token and what it is without and with it."""
        found: dict[BddPointer, T] = {}
        for pointer in value.pointers():
            variable = value.node_variable(pointer)
            if variable is None:
                found[pointer] = true if pointer.is_one() else false
            else:
                low, high = value.node_links(pointer)
                found[pointer] = combine(tokens[variable], found[low], found[high])
        return found[value.root()]

    def restrict(self, value: Bdd, gone: Iterable[Token]) -> Bdd:
        """What remains when some tokens go."""
        return value.r_restrict({self._variables[self.levels[token]]: False for token in gone})

    # -- order

    def place(self, order: Sequence[Token]) -> bool:
        """Gives tokens that have no level one between those of the tokens around them; whether there was room for all."""
        taken = sorted(self.levels.values())
        at = 0
        while at < len(order):
            if order[at] in self.levels:
                at += 1
                continue
            end = at
            while end < len(order) and order[end] not in self.levels:
                end += 1
            below = self.levels[order[at - 1]] if at else -1
            following = bisect_right(taken, below)
            above = taken[following] if following < len(taken) else None
            if not self._put(order[at:end], below, above):
                return False
            for token in order[at:end]:
                insort(taken, self.levels[token])
            at = end
        return True

    def place_last(self, tokens: Sequence[Token]) -> bool:
        """Gives tokens levels after all others; whether there was room."""
        return self._put(tokens, max(self.levels.values(), default=-1), None)

    def _put(self, tokens: Sequence[Token], below: int, above: int | None) -> bool:
        room = (self.capacity if above is None else above) - below - 1
        if room < len(tokens):
            return False
        if above is None:
            # At the end others will follow.
            room = max(min(room - room // 4, _APART * len(tokens)), len(tokens))
        for number, token in enumerate(tokens, 1):
            level = below + number * (room + 1) // (len(tokens) + 1)
            self.levels[token], self.tokens[self._variables[level]] = level, token
        return True

    def forget(self, tokens: Iterable[Token]) -> None:
        """Frees the levels of tokens that no value depends on any more."""
        for token in tokens:
            del self.tokens[self._variables[self.levels.pop(token)]]

    def deal_out(self, order: Sequence[Token], values: Sequence[Bdd]) -> list[Bdd]:
        """New levels for all tokens, in this order, and the values as they are with them."""
        if len(order) > MOST_VARIABLES:
            raise NotInThisSemiring(
                f"{len(order)} tokens are more than the {MOST_VARIABLES} that diagrams can tell apart"
            )
        if _APART * len(order) >= self.capacity:
            self._make_room(min(max(2 * _APART * len(order), 256), MOST_VARIABLES))
        before = self.tokens
        self.levels, self.tokens = {}, {}
        self.place(order)
        return [self.moved(value, before) for value in values]

    def _make_room(self, capacity: int) -> None:
        self.capacity = capacity
        self._set = BddVariableSet(capacity)
        self._ids = self._set.variable_ids()
        self._variables = self._ids[::-1] if self.newest_first else self._ids  # by level
        self.zero, self.one = self._set.mk_false(), self._set.mk_true()

    def moved(self, value: Bdd, before: Mapping[BddVariable, Token]) -> Bdd:
        return self._fold(value, self.one, self.zero, self._rebuilt, before)

    def taken_from(self, other: FormulaDiagrams[Token], value: Bdd) -> Bdd:
        """A value of others with the same tokens, in another order."""
        return other._fold(value, self.one, self.zero, self._rebuilt, other.tokens)

    def _rebuilt(self, token: Token, low: Bdd, high: Bdd) -> Bdd:
        # A positive function that is true without a token is true with it.
        return low.l_or(self.literal(token).l_and(high))

    # -- to keep and to send

    def dump(self, value: Bdd) -> bytes:
        return bytes(value.data_bytes())

    def load(self, data: bytes) -> Bdd:
        return Bdd(self._set, data)
