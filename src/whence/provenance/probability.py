"""How likely a fact is, if base facts are there independently of each other.

The derivation graph is cut into blocks: where every proof of a fact goes through another fact, and what lies between shares no
base fact with what lies below, the two are independent and their probabilities multiply. A block becomes a decision diagram,
which gives its probability exactly; one that outgrows its budget is bounded instead, by splitting on the facts of proofs,
likeliest case first: cases known to be true make the lower bound, those not known to be false the upper.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import count
from types import MappingProxyType
from typing import NamedTuple

from whence.lang.program import Aggregation, Atom, Negation, Program
from whence.lang.tree import walk
from whence.lang.types import Tuple
from whence.provenance.base import fact_of
from whence.provenance.copies import Rows
from whence.provenance.derivations import CannotExplain, Derivations
from whence.provenance.derive import derivations_of
from whence.provenance.diagrams import FALSE, TRUE, BudgetExceeded, Diagrams
from whence.provenance.expand import Bounds, derivation_graph
from whence.provenance.graph import Derivation, DerivationGraph, Fact
from whence.provenance.heights import smallest_choices
from whence.provenance.proofs import assemble
from whence.provenance.show import show_fact, source_text
from whence.session import Session

Chances = Mapping[Fact, float]
_WIDEST = 300  # variables in a diagram, which is built recursively


class Probability(NamedTuple):
    """A probability lies between two bounds; they are equal if it is known exactly."""

    low: float
    high: float

    @property
    def is_exact(self) -> bool:
        return self.low == self.high

    def __mul__(self, other: Probability) -> Probability:  # type: ignore[override]
        return Probability(self.low * other.low, self.high * other.high)


@dataclass(frozen=True, slots=True)
class Budget:
    """How much to spend on one fact: nodes of decision diagrams, then seconds on bounds, until these are `width` apart."""

    nodes: int = 300_000
    seconds: float = 2.0
    width: float = 1e-9


def probability(
    subject: Session | Derivations,
    relation: str | tuple[str, Tuple],
    row: Tuple | None = None,
    chances: Chances | Callable[[Fact], float] = MappingProxyType({}),
    *,
    budget: Budget = Budget(),  # noqa: B008 - immutable
    bounds: Bounds = Bounds(),  # noqa: B008 - immutable
) -> Probability:
    """How likely a fact is. `chances` are the probabilities of base facts; those that it does not name are certain.

    >>> from whence import Session, load
    >>> session = Session(load("p(x) :- e(x). p(x) :- f(x). .decl e(x:number) .input e .decl f(x:number) .input f"),
    ...                   facts={"e": [(1,)], "f": [(1,)]})
    >>> probability(session, "p", (1,), {Fact("e", (1,)): 0.5, Fact("f", (1,)): 0.5})
    Probability(low=0.75, high=0.75)
    """
    fact = fact_of(derivations_of(subject).program, relation, row)
    return probabilities(subject, [fact], chances, budget=budget, bounds=bounds)[fact]


def probabilities(
    subject: Session | Derivations,
    facts: Iterable[Fact],
    chances: Chances | Callable[[Fact], float],
    *,
    budget: Budget = Budget(),  # noqa: B008 - immutable
    bounds: Bounds = Bounds(),  # noqa: B008 - immutable
) -> dict[Fact, Probability]:
    """How likely each of several facts is; what they share is worked out once."""
    roots = list(facts)
    source = derivations_of(subject)
    row_of = Rows(source.program).of

    def given(fact: Fact) -> float:
        return chances(row_of(fact)) if callable(chances) else chances.get(row_of(fact), 1.0)

    graph = derivation_graph(source, roots, bounds)
    refuse_uncertain_absence(
        source,
        {root.relation for root in roots},
        given,
        lambda names: f"the facts of {names} would have to be certain",
    )
    if graph.cut is not None:
        raise CannotExplain(f"the derivations were cut off at {graph.cut.reason}; raise the bound")
    known = {fact: given(fact) for fact in graph.base}
    for fact, chance in known.items():
        if not 0 <= chance <= 1:
            raise CannotExplain(f"{chance} is not a probability: {show_fact(fact)} needs one between 0 and 1")
    blocks = _Blocks(graph, known, budget)
    return {root: blocks.probability(root) for root in roots}


def refuse_uncertain_absence(
    source: Derivations, roots: set[str], chance: Callable[[Fact], float], advice: Callable[[str], str]
) -> None:
    """Negations and aggregates see facts come and go in ways that the derivations of what is there do not tell.

    `advice` says what to do, given the names of the relations that would have to be certain.
    """
    program = source.program
    base = frozenset(program.base_relations)
    rows = Rows(program)
    uncertain: dict[str, bool] = {}

    def is_uncertain(name: str) -> bool:
        if name not in uncertain:
            uncertain[name] = any(chance(fact) < 1 for fact in source.base_facts(name))
        return uncertain[name]

    for rule in program.rules:
        if not any(rule.head.relation in depends_on(program, root) for root in roots):
            continue
        asking = [literal for literal in rule.body if isinstance(literal, Negation | Aggregation)]
        for name in {part.relation for part in walk(tuple(asking)) if isinstance(part, Atom)}:
            doubtful = sorted({rows.table(each) for each in depends_on(program, name) & base if is_uncertain(each)})
            if doubtful:
                asking_for = "there" if program.relations[name].helper else f"in {rows.table(name)}"
                asked_by = f"({source_text(program, rule.span)})" if rule.is_query else f"rule {rule.name}"
                raise CannotExplain(
                    f"{asked_by} asks what is not {asking_for}, or how much is, which depends on facts that may be missing: "
                    f"{advice(', '.join(doubtful))}"
                )


def depends_on(program: Program, relation: str) -> set[str]:
    """A relation and all that its rules lead to."""
    found: set[str] = set()
    pending = [relation]
    while pending:
        name = pending.pop()
        if name not in found:
            found.add(name)
            bodies = [rule.body for rule in program.rules_for(name)]
            pending += [part.relation for body in bodies for part in walk(body) if isinstance(part, Atom)]
    return found


@dataclass
class _Blocks:
    graph: DerivationGraph
    chances: Chances
    budget: Budget
    done: dict[Fact, Probability] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.needed = necessary_facts(self.graph)
        self.graph = without_detours(self.graph, self.needed)
        self.numbers = {fact: at for at, fact in enumerate(self.needed)}

    def probability(self, root: Fact) -> Probability:
        """Block by block, from the root down the facts that its proofs cannot avoid."""
        chain: list[tuple[Fact, Fact | None, DerivationGraph]] = []
        fact: Fact | None = root
        while fact is not None and fact not in self.done:
            entry, block = self._block(fact)
            chain.append((fact, entry, block))
            fact = entry
        for each, entry, block in reversed(chain):
            chance = _Block(block, each, self.chances, self.budget).probability()
            self.done[each] = chance if entry is None else chance * self.done[entry]
        return self.done[root]

    def _block(self, fact: Fact) -> tuple[Fact | None, DerivationGraph]:
        """The nearest fact that every proof of this one goes through and that is independent of the way from it."""
        names = list(self.numbers)
        bits = self.needed[fact]
        unavoidable = [
            names[at]
            for at in range(bits.bit_length())
            if bits >> at & 1 and names[at] != fact and names[at] not in self.graph.base
        ]
        unavoidable.sort(key=lambda each: (-self.needed[each].bit_count(), show_fact(each)))
        for entry in unavoidable:
            block = _below(self.graph, fact, stop=entry)
            below = _below(self.graph, entry)
            if not (block.base - {entry}) & below.base:
                return entry, block
        return None, _below(self.graph, fact)


def necessary_facts(graph: DerivationGraph) -> dict[Fact, int]:
    """For each fact, the set of facts that are in all of its proofs, itself included: bit n is the n-th fact's."""
    facts = sorted(graph.facts, key=show_fact)
    own = {fact: 1 << at for at, fact in enumerate(facts)}
    needed = dict.fromkeys(facts, (1 << len(facts)) - 1)
    users: dict[Fact, list[Fact]] = {}
    for fact, firings in graph.derivations.items():
        for firing in firings:
            for premise in firing.premises:
                users.setdefault(premise, []).append(fact)
    pending = dict.fromkeys(facts)
    while pending:
        fact = next(iter(pending))
        del pending[fact]
        if fact in graph.base:
            found = own[fact]
        else:
            found = (1 << len(facts)) - 1
            for firing in graph.derivations.get(fact, ()):
                joint = 0
                for premise in firing.premises:
                    joint |= needed[premise]
                found &= joint
            found |= own[fact]
        if found != needed[fact]:
            needed[fact] = found
            pending |= dict.fromkeys(users.get(fact, ()))
    return needed


def without_detours(graph: DerivationGraph, needed: Mapping[Fact, int]) -> DerivationGraph:
    """The graph without firings that use something for which their own head is needed: no proof gains by them."""
    own = {fact: 1 << at for at, fact in enumerate(needed)}
    return replace(
        graph,
        derivations={
            fact: tuple(
                firing for firing in firings if not any(needed[premise] & own[fact] for premise in firing.premises)
            )
            for fact, firings in graph.derivations.items()
        },
    )


def _below(graph: DerivationGraph, root: Fact, stop: Fact | None = None) -> DerivationGraph:
    """What a fact is derived from, down to `stop`, which is then as good as a base fact."""
    derivations: dict[Fact, tuple[Derivation, ...]] = {}
    base: set[Fact] = set()
    pending = [root]
    while pending:
        fact = pending.pop()
        if fact == stop:
            base.add(fact)
        elif fact not in derivations:
            if fact in graph.base:
                base.add(fact)
            derivations[fact] = graph.derivations.get(fact, ())
            pending += [premise for firing in derivations[fact] for premise in firing.premises]
    return DerivationGraph((root,), derivations, frozenset(base))


@dataclass
class _Block:
    graph: DerivationGraph
    root: Fact
    chances: Chances
    budget: Budget

    def probability(self) -> Probability:
        try:
            exact = self._by_diagram()
        except BudgetExceeded:
            return self._by_cases()
        return Probability(exact, exact)

    def chance(self, fact: Fact) -> float:
        return self.chances.get(fact, 1.0)  # the entry of a block is taken for granted

    def _by_diagram(self) -> float:
        compiled = compile_diagram(self.graph, self.root, lambda fact: self.chance(fact) < 1, self.budget.nodes)
        return compiled.diagrams.probability(compiled.root, [self.chance(fact) for fact in compiled.order])

    def _by_cases(self) -> Probability:
        """Splits on a proof: all its facts are there, or the first is missing, or the second is the first missing, …"""
        until = time.monotonic() + self.budget.seconds
        low, high = 0.0, 1.0
        serial = count()
        cases: list[tuple[float, int, frozenset[Fact], frozenset[Fact]]] = [
            (-1.0, next(serial), frozenset(), frozenset())
        ]
        while cases and high - low > self.budget.width and time.monotonic() < until:
            weight, _, there, missing = heapq.heappop(cases)
            weight = -weight
            choices = smallest_choices(replace(self.graph, base=self.graph.base - missing))
            if self.root not in choices:
                high -= weight
                continue
            proof = assemble(self.root, {fact: firing for fact, (_, firing) in choices.items()})
            leaves = [part.fact for part in proof if part.firing is None]
            for leaf in dict.fromkeys(leaves):
                if leaf in there or self.chance(leaf) == 1:
                    continue
                lost = weight * (1 - self.chance(leaf))
                if lost > 0:
                    heapq.heappush(cases, (-lost, next(serial), there, missing | {leaf}))
                weight *= self.chance(leaf)
                there |= {leaf}
            low += weight
        return Probability(min(low, 1.0), max(low, min(high, 1.0))) if cases else Probability(low, low)


class Compiled(NamedTuple):
    """A fact as a Boolean function of base facts: a decision diagram, and the facts that its variables stand for."""

    diagrams: Diagrams
    root: int
    order: list[Fact]


def compile_diagram(graph: DerivationGraph, root: Fact, is_variable: Callable[[Fact], bool], nodes: int) -> Compiled:
    """Raises BudgetExceeded. Base facts that are no variables are taken for granted."""
    order = [fact for fact in variable_order(graph) if is_variable(fact)]
    if len(order) > _WIDEST:
        raise BudgetExceeded
    diagrams = Diagrams(nodes)
    numbers = {fact: at for at, fact in enumerate(order)}
    functions = {
        fact: diagrams.variable(numbers[fact]) if fact in numbers else TRUE if fact in graph.base else FALSE
        for fact in graph.facts
    }
    users: dict[Fact, list[Derivation]] = {}
    for firings in graph.derivations.values():
        for firing in firings:
            for premise in set(firing.premises):
                users.setdefault(premise, []).append(firing)
    unconditional = [each for firings in graph.derivations.values() for each in firings if not each.premises]
    waiting = dict.fromkeys(each for fact in sorted(graph.base, key=show_fact) for each in users.get(fact, ()))
    waiting |= dict.fromkeys(unconditional)
    while waiting:
        firing = next(iter(waiting))
        del waiting[firing]
        made = TRUE
        for premise in firing.premises:
            made = diagrams.conjunction(made, functions[premise])
        made = diagrams.disjunction(functions[firing.head], made)
        if made != functions[firing.head]:
            functions[firing.head] = made
            waiting |= dict.fromkeys(users.get(firing.head, ()))
    return Compiled(diagrams, functions[root], order)


def variable_order(graph: DerivationGraph, *, depth_first: bool = False) -> list[Fact]:
    """The base facts of a graph, in the order in which derivations from the bottom up meet them.

    Breadth first by default: on networks its diagrams are several times smaller than those of the depth-first order.
    """
    users: dict[Fact, list[Derivation]] = {}
    for firings in graph.derivations.values():
        for firing in firings:
            for premise in dict.fromkeys(firing.premises):
                users.setdefault(premise, []).append(firing)
    ordered: dict[Fact, None] = {}
    if not depth_first:
        for fact in smallest_choices(graph):  # in the order of heights
            if fact not in graph.base:
                for firing in users.get(fact, ()):
                    ordered |= dict.fromkeys(premise for premise in firing.premises if premise in graph.base)
        started = [firing for firings in graph.derivations.values() for firing in firings]
        first = [each for firing in started if graph.base.issuperset(firing.premises) for each in firing.premises]
        return list(dict.fromkeys([*first, *ordered, *sorted(graph.base, key=show_fact)]))
    seen: set[Fact] = set()
    stack = sorted(graph.base, key=show_fact, reverse=True)
    while stack:
        fact = stack.pop()
        if fact in seen:
            continue
        seen.add(fact)
        for firing in reversed(users.get(fact, ())):
            ordered |= dict.fromkeys(premise for premise in firing.premises if premise in graph.base)
            stack.append(firing.head)
    return list(dict.fromkeys([*ordered, *sorted(graph.base, key=show_fact)]))
