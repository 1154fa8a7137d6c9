"""Containment and equivalence of unions of conjunctive queries, semiring by semiring.

`left` is contained in `right` if in every database every tuple's annotation in `left` is at most that in `right`. Freezing a
part of `left`, that is, giving values to its variables, makes the databases that matter: if none of them refutes the
containment, none does. What has to be found in each is in `criteria`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import cache
from itertools import chain, islice, permutations, product
from math import comb, prod
from operator import gt, ne

from whence.lang.types import Kind, Value
from whence.reasoning.answers import Answer, Counterexample, Mapped, Verdict, confirmed, mapped
from whence.reasoning.cases import Frozen, cases, freeze, most_general, satisfies
from whence.reasoning.criteria import (
    ADDING,
    CRITERIA,
    NUMBERS,
    RINGS,
    Criterion,
    Tags,
    cost_tags,
    found,
    never_dearer,
    tags_of,
)
from whence.reasoning.mappings import Bag, Steps, TooHard
from whence.reasoning.queries import Conjunctive, NotConjunctive, Query, constants_of, derived_relations
from whence.reasoning.weigh import Powers, add_up, number_of, powers
from whence.semiring import SEMIRINGS, NotInThisSemiring

MOST_CASES = 25_000
_TRIED = 500  # cases in which a counter-example is looked for where not finding one decides nothing
_SMALL = 30  # cases of few values in which a counter-example is looked for first
_STEPS_A_CASE = 10_000
Refutes = Callable[[int, int], bool]


def contained(left: Query, right: Query, semiring: str) -> Answer:
    """Whether every annotation in `left` is at most that in `right`, whatever the database. Raises NotInThisSemiring."""
    _check_comparable(left, right)
    question = _Question(left, right, semiring)
    try:
        if semiring in CRITERIA:
            return question.by_mappings(CRITERIA[semiring])
        if semiring in ADDING:
            return question.by_counting(ADDING[semiring])
        if semiring in NUMBERS:
            return question.by_trying_numbers()
    except TooHard as error:
        return Answer(Verdict.UNDECIDED, str(error))
    raise NotInThisSemiring(f"{semiring} has no order, so nothing is contained in anything: ask for equivalence")


def equivalent(left: Query, right: Query, semiring: str) -> Answer:
    """Whether both queries give every tuple the same annotation, whatever the database. Raises NotInThisSemiring."""
    _check_comparable(left, right)
    question = _Question(left, right, semiring)
    if semiring not in CRITERIA:
        try:
            return question.by_isomorphism()
        except TooHard as error:
            return Answer(Verdict.UNDECIDED, str(error))
    there = contained(left, right, semiring)
    if there.verdict is Verdict.NO:
        return there
    back = contained(right, left, semiring)
    if back.verdict is Verdict.NO and back.counterexample is not None:
        example = replace(back.counterexample, left=back.counterexample.right, right=back.counterexample.left)
        return replace(back, counterexample=example)
    if Verdict.UNDECIDED in (there.verdict, back.verdict):
        return there if there.verdict is Verdict.UNDECIDED else back
    return replace(there, mappings=there.mappings + back.mappings)


def adds_nothing(left: Query, right: Query, semiring: str) -> tuple[Mapped, ...] | None:
    """The mappings that make `left` superfluous beside `right`, or None if none were found: it may still be so.

    Where ⊕ is idempotent that is containment. Elsewhere what derives anything counts.
    """
    question = _Question(left, right, semiring)
    try:
        return question.superfluous(CRITERIA.get(semiring))
    except TooHard:
        return None


class _Question:
    def __init__(self, left: Query, right: Query, semiring: str) -> None:
        if semiring not in {*CRITERIA, *ADDING, *NUMBERS, *RINGS}:
            raise NotInThisSemiring(f"{semiring} is not a semiring to compare queries in; polynomial tells the most")
        if (left.minus or right.minus) and semiring not in RINGS:
            names = " and ".join(sorted(RINGS))
            raise NotInThisSemiring(f"rules that take away have a meaning in {names} only, not in {semiring}")
        self._left, self._right = _without_signs(left, right), _without_signs(right, left)
        self._semiring = SEMIRINGS[semiring]
        parts = left.parts + right.parts
        self._constants = constants_of(parts)
        compared = [each for part in parts for each in part.comparisons]
        self._compares = bool(compared)
        self._ordered: frozenset[Kind] = frozenset(one.kind for op, one, _ in compared if op != "!=")
        self._steps = Steps()

    def _cases(self, parts: Iterable[Conjunctive]) -> Iterator[Frozen]:
        every = (frozen for part in parts for frozen in cases(part, self._constants, self._ordered))
        for number, frozen in enumerate(every):
            if number == MOST_CASES:
                raise TooHard(f"there are more than {MOST_CASES:,} cases of equal or ordered variables")
            yield frozen

    def _general(self, parts: Iterable[Conjunctive]) -> Iterator[Frozen]:
        """What has to be looked at where a mapping into a case maps into all cases with more equal variables too."""
        if self._compares:
            return self._cases(parts)
        return (most_general(part, self._constants) for part in parts)

    # -- where ⊕ is idempotent ----------------------------------------------------------------------------------------

    def by_mappings(self, criterion: Criterion) -> Answer:
        witnesses: list[Mapped] = []
        for frozen in self._general(self._left.parts):
            there = found(criterion, frozen, self._right.parts, self._steps)
            if there is not None:
                witnesses += self._mapped(there, frozen)
                continue
            failing = self._smaller(frozen, criterion)
            tags = self._refuting_tags(failing, criterion, self._steps)
            assert tags is not None
            reason = f"rule {frozen.part.rule} would need {criterion}"
            return Answer(Verdict.NO, reason, (), self._example(tags, failing))
        return Answer(Verdict.YES, f"each rule has {criterion}", tuple(witnesses))

    def superfluous(self, criterion: Criterion | None) -> tuple[Mapped, ...] | None:
        witnesses: list[Mapped] = []
        for frozen in self._general(self._left.parts):
            there = criterion and found(criterion, frozen, self._right.parts, self._steps)
            if not there:
                return None
            witnesses += self._mapped(there, frozen)
        return tuple(witnesses)

    def _refuting_tags(self, frozen: Frozen, criterion: Criterion, steps: Steps) -> Tags | None:
        if criterion is Criterion.NEVER_DEARER:
            costs = never_dearer(frozen, self._right.parts, steps)
            return None if isinstance(costs, list) else cost_tags(self._semiring, costs)
        there = found(criterion, frozen, self._right.parts, steps)
        return tags_of(self._semiring, frozen.bag) if there is None else None

    def _example(self, tags: Tags, frozen: Frozen) -> Counterexample:
        if (
            self._semiring.name == "why"
        ):  # few witnesses a fact are easier to read and to evaluate; mostly they are enough
            for most in (1, 2):
                few = tags_of(self._semiring, {fact: min(times, most) for fact, times in frozen.bag.items()})
                if (example := self._confirmed(few, frozen, both_ways=False)) is not None:
                    return example
        example = self._confirmed(tags, frozen, both_ways=False)
        assert example is not None, "the reference evaluator and the criterion disagree"
        return example

    def _smaller(self, frozen: Frozen, criterion: Criterion) -> Frozen:
        """A case that fails as this one does, with fewer values if one is soon found: easier to read and to evaluate."""
        steps = Steps(3 * _STEPS_A_CASE)
        try:
            for case, _ in zip(cases(frozen.part, self._constants, self._ordered), range(_SMALL), strict=False):
                if self._refuting_tags(case, criterion, steps) is not None:
                    return case
            # Once: a merger that does not fail would not do so with others on top, but for rare cases.
            for new, old in permutations(dict.fromkeys(frozen.values.values()), 2):
                merged = _merged(frozen, new, old)
                if merged is not None and self._refuting_tags(merged, criterion, steps) is not None:
                    frozen = merged
        except TooHard:
            pass  # what is known to fail is a counter-example, if not the smallest
        return frozen

    def _confirmed(self, tags: Tags, frozen: Frozen, *, both_ways: bool) -> Counterexample | None:
        return confirmed(self._left, self._right, self._semiring, tags, frozen.head, both_ways=both_ways)

    def _mapped(self, there: Iterable[tuple[Conjunctive, dict]], frozen: Frozen) -> list[Mapped]:  # type: ignore[type-arg]
        return [mapped(part.rule, frozen, binding, only_case=not self._compares) for part, binding in there]

    # -- where derivations add up -------------------------------------------------------------------------------------

    def by_counting(self, criterion: Criterion) -> Answer:
        witnesses = self._matched(criterion)
        if witnesses is not None:
            return Answer(Verdict.YES, f"each rule has, to itself, {criterion}", witnesses)
        few = self._tried(self._left.parts, _SMALL)
        for frozen in chain(few, self._cases(self._left.parts)):
            bag = self._telling(criterion, frozen, self._steps, gt)
            if bag is not None:
                example = self._confirmed(tags_of(self._semiring, bag), frozen, both_ways=False)
                assert example is not None, "the reference evaluator and the count disagree"
                return Answer(Verdict.NO, f"rule {frozen.part.rule} has more derivations", (), example)
        return Answer(Verdict.YES, "in each case of equal variables there are derivations enough")

    def _matched(self, criterion: Criterion) -> tuple[Mapped, ...] | None:
        """Mappings from different parts of the right query for all parts of the left one."""
        if self._compares or len(self._left.parts) > len(self._right.parts):
            return None
        lefts = list(self._general(self._left.parts))
        options = [
            {
                at: there
                for at, part in enumerate(self._right.parts)
                if (there := found(criterion, frozen, (part,), self._steps)) is not None
            }
            for frozen in lefts
        ]
        taken = _assigned(options)
        if taken is None:
            return None
        return tuple(
            each
            for frozen, there, at in zip(lefts, options, taken, strict=True)
            for each in self._mapped(there[at], frozen)
        )

    def _telling(self, criterion: Criterion, frozen: Frozen, steps: Steps, refutes: Refutes) -> Bag | None:
        """How many variables each fact of the case needs so that a product of them all has coefficients that refute it."""
        if criterion is Criterion.EXACT:
            counts = (self._exact(query, frozen, steps) for query in (self._left, self._right))
            return frozen.bag if refutes(*counts) else None
        # Without powers, a fact that is a sum of variables shows how often it is used: each choice of as many of them as
        # there are in a product comes from the ways to use all of them.
        left, right = (
            {used: number for used, number in self._powers(query, frozen, steps).items() if all(used)}
            for query in (self._left, self._right)
        )
        for numbers in product(*(range(1, times + 1) for times in frozen.bag.values())):
            if refutes(_spread(left, numbers), _spread(right, numbers)):
                return dict(zip(frozen.bag, numbers, strict=True))
        return None

    def _exact(self, query: Query, frozen: Frozen, steps: Steps) -> int:
        """How many derivations use each fact exactly as often as the case does."""
        size = frozen.bag.total()
        alike = [part for part in query.parts if len(part.atoms) == size]
        facts, wanted = tuple(frozen.bag), tuple(frozen.bag.values())
        return sum(powers(each, facts, frozen.head, steps, at_most=frozen.bag).get(wanted, 0) for each in alike)

    def _powers(self, query: Query, frozen: Frozen, steps: Steps) -> Powers:
        return add_up([powers(part, tuple(frozen.bag), frozen.head, steps) for part in query.parts])

    # -- numbers ------------------------------------------------------------------------------------------------------

    def by_trying_numbers(self) -> Answer:
        witnesses = self._matched(Criterion.ONTO)
        if witnesses is not None:
            return Answer(Verdict.YES, f"each rule has, to itself, {Criterion.ONTO}", witnesses)
        for frozen in self._tried(self._left.parts, _TRIED):
            numbers = self._refuting_numbers(frozen, gt)
            if numbers is not None and (example := self._confirmed(numbers, frozen, both_ways=False)) is not None:
                return Answer(Verdict.NO, f"rule {frozen.part.rule} has more derivations", (), example)
        every = self._cases(self._left.parts)
        if all(self._telling(Criterion.ONTO, frozen, self._steps, gt) is None for frozen in every):
            return Answer(Verdict.YES, "in each case of equal variables there are derivations enough, as for trio")
        reason = (
            "no small database refutes it, and what would be enough (trio) does not hold; between the two, containment"
        )
        return Answer(
            Verdict.UNDECIDED, f"{reason} of numbers of derivations is undecidable for unions and open for rules"
        )

    def _tried(self, parts: tuple[Conjunctive, ...], most: int) -> Iterator[Frozen]:
        """Cases in which a counter-example may show: those of few values, which are easy to read, and then the most general."""
        every = [cases(part, self._constants, self._ordered) for part in parts]
        for each in every:
            yield from islice(each, _SMALL)
        if not self._compares:
            yield from self._general(parts)
        for each in every:
            yield from islice(each, most - _SMALL)

    def _refuting_numbers(self, frozen: Frozen, refutes: Refutes) -> Tags | None:
        steps = Steps(_STEPS_A_CASE)
        try:
            left, right = (self._polynomial(query, frozen, steps) for query in (self._left, self._right))
            for each in _small_numbers(len(frozen.bag), right((1,) * len(frozen.bag)) + 1):
                if refutes(left(each), right(each)):
                    return dict(zip(frozen.bag, each, strict=True))
        except TooHard:
            pass
        return None

    def _polynomial(self, query: Query, frozen: Frozen, steps: Steps) -> Callable[[tuple[int, ...]], int]:
        """How many derivations there are if each fact is there so many times: written out, unless that would be long."""
        try:
            terms = self._powers(query, frozen, Steps(_STEPS_A_CASE // 10))
        except TooHard:
            return lambda numbers: sum(
                number_of(part, dict(zip(frozen.bag, numbers, strict=True)), frozen.head, steps) for part in query.parts
            )
        return lambda numbers: sum(many * prod(map(pow, numbers, each)) for each, many in terms.items())

    # -- equivalence where derivations add up -------------------------------------------------------------------------

    def by_isomorphism(self) -> Answer:
        """One polynomial each: if they differ they do so for some numbers, so that all these semirings agree."""
        alike = self._same_counts() if self._compares else self._isomorphic()
        if alike is not None:
            return alike
        parts = self._left.parts + self._right.parts
        for frozen in self._tried(parts, _TRIED):
            tags = self._telling_tags(frozen)
            if tags is not None and (example := self._confirmed(tags, frozen, both_ways=True)) is not None:
                return Answer(Verdict.NO, "the rules do not correspond one to one", (), example)
        reason = "the rules do not correspond one to one, so they differ, but in no database small enough to show"
        return Answer(Verdict.UNDECIDED, reason)

    def _isomorphic(self) -> Answer | None:
        if len(self._left.parts) != len(self._right.parts):
            return None
        free, witnesses = list(self._right.parts), list[Mapped]()
        for frozen in self._general(self._left.parts):
            # As many variables, all hit: the mapping can be turned round.
            alike = (each for each in free if len(each.variables) == len(frozen.part.variables))
            there = found(Criterion.EXACT, frozen, alike, self._steps)
            if there is None:
                return None
            witnesses += self._mapped(there, frozen)
            del free[next(at for at, each in enumerate(free) if each is there[0][0])]
        return Answer(Verdict.YES, "the rules correspond one to one, up to the names of variables", tuple(witnesses))

    def _same_counts(self) -> Answer | None:
        number = 0
        for number, frozen in enumerate(self._cases(self._left.parts + self._right.parts), 1):  # noqa: B007
            if self._exact(self._left, frozen, self._steps) != self._exact(self._right, frozen, self._steps):
                return None
        return Answer(
            Verdict.YES, f"both have as many derivations in each of the {number:,} cases of ordered variables"
        )

    def _telling_tags(self, frozen: Frozen) -> Tags | None:
        if self._semiring.variable("") is None:
            return self._refuting_numbers(frozen, ne)
        criterion = ADDING.get(self._semiring.name, Criterion.EXACT)
        try:
            bag = self._telling(criterion, frozen, Steps(_STEPS_A_CASE), ne)
        except TooHard:
            return None
        return None if bag is None else tags_of(self._semiring, bag)


def _without_signs(query: Query, other: Query) -> Query:
    """A - B and C - D are the same if A + D and C + B are."""
    plus = tuple(part for part in query.parts if part.sign > 0)
    return replace(query, parts=plus + tuple(replace(part, sign=1) for part in other.parts if part.sign < 0))


def _check_comparable(left: Query, right: Query) -> None:
    if left.signature != right.signature:
        shown = (f"{each.relation}({', '.join(map(str, each.signature))})" for each in (left, right))
        raise NotConjunctive(f"{' and '.join(shown)} do not have the same columns")
    for one, other in permutations((left, right)):
        derived = derived_relations(other.program)
        for name, kinds in one.base.items():
            if name in derived:
                raise NotConjunctive(f"{name} is a base relation for {one.relation}, but derived for {other.relation}")
            if other.base.get(name, kinds) != kinds:
                raise NotConjunctive(f"{name} does not have the same columns for {one.relation} and {other.relation}")


def _merged(frozen: Frozen, new: Value, old: Value) -> Frozen | None:
    """The frozen part with one value in place of another, if both are there and its comparisons allow it."""
    kinds = {value: variable.kind for variable, value in frozen.values.items()}
    if new not in kinds or kinds.get(old) != kinds[new]:
        return None
    values = {variable: new if value == old else value for variable, value in frozen.values.items()}
    return freeze(frozen.part, values) if satisfies(frozen.part, values) else None


def _assigned(options: list[dict[int, list]]) -> list[int] | None:  # type: ignore[type-arg]
    """For each of the options one of its numbers, all different: a matching by augmenting paths."""
    owner: dict[int, int] = {}

    def place(one: int, seen: set[int]) -> bool:
        for number in options[one].keys() - seen:
            seen.add(number)
            if number not in owner or place(owner[number], seen):
                owner[number] = one
                return True
        return False

    if not all(place(one, set()) for one in range(len(options))):
        return None
    return [number for _, number in sorted((one, number) for number, one in owner.items())]


def _spread(used: Powers, numbers: tuple[int, ...]) -> int:
    """The coefficient of so many variables of each fact, if a power of their sum loses its exponents."""
    return sum(times * prod(map(_surjections, each, numbers)) for each, times in used.items())


@cache
def _surjections(size: int, onto: int) -> int:
    return sum((-1) ** left_out * comb(onto, left_out) * (onto - left_out) ** size for left_out in range(onto + 1))


def _small_numbers(size: int, many: int) -> Iterator[tuple[int, ...]]:
    alike = ((number,) * size for number in (1, 2, 3, 10))
    one_larger = (
        tuple(number if at == large else 1 for at in range(size)) for number in (2, 5, many) for large in range(size)
    )
    primes = tuple(number for number in range(2, 60) if all(number % each for each in range(2, number)))[:size]
    every = product((1, 2, 3), repeat=size) if size <= 4 else iter(())
    # A polynomial is not zero everywhere on a line that grows fast enough.
    steep = (tuple(number**at for at in range(size)) for number in (2, 7, 31))
    return chain(alike, one_larger, (primes,) if len(primes) == size else (), steep, every)
