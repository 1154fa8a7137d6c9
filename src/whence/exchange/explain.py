"""Where rows come from and why others are not there, in terms of peers, mappings and policies.

`ExchangeDerivations` answers what provenance asks: a row of a peer is base if the peer put it in, and a mapping derives it from
rows of other peers. The internal tables do not show. So every question, picture and export of provenance works on it.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from whence.exchange.compile import LOCAL, LOST, REJECTED, TRUSTED, WITHDRAWN, charged, table_of
from whence.exchange.instance import Instance, instantiate
from whence.exchange.mappings import original_name
from whence.exchange.model import Distrust, SchemaMapping, peer_of
from whence.exchange.rows import show_row
from whence.lang import tree
from whence.lang.program import Program
from whence.lang.types import Tuple, Value
from whence.provenance.derivations import Derivations
from whence.provenance.derive import Deriver
from whence.provenance.expand import derivation_graph
from whence.provenance.graph import Derivation, DerivationGraph, Fact
from whence.provenance.solve import solve_graph
from whence.semiring import Tropical

_DEEPEST = 6
PLACE = 1_000_000  # what one place in a preference costs


class ExchangeDerivations(Derivations):
    """True of the instance as it is now. Of the `considered` rows it says what derives them even if they lost a conflict."""

    def __init__(self, instance: Instance, considered: Iterable[Fact] = ()) -> None:
        self.instance = instance
        self._considered = frozenset(considered)
        self._deriver = Deriver(instance.session)
        self._mappings = {
            f"{mapping.name}.{number}": mapping
            for mapping in instance.confederation.mappings.values()
            for number, _ in enumerate(mapping.heads, 1)
        }

    @property
    def program(self) -> Program:
        return self.instance.compiled.program

    def holds(self, fact: Fact) -> bool:
        if fact.relation not in self.instance.confederation.relations:
            raise ValueError(f"there is no relation {fact.relation}")
        return fact in self._considered or self.instance.holds(*fact)

    def is_base(self, fact: Fact) -> bool:
        return self._is_in(LOCAL, fact)

    def _is_in(self, part: str, fact: Fact) -> bool:
        row = self.instance.rows.to_engine(*fact)
        return bool(self._deriver.state.tables[f"{fact.relation}.{part}"].lookup(tuple(range(len(row))), row))

    def base_facts(self, relation: str) -> Iterable[Fact]:
        return [Fact(relation, row) for row in self.instance.part(relation, LOCAL)]

    def derivations(self, fact: Fact) -> Iterator[Derivation]:
        if self._is_in(REJECTED, fact) or (fact not in self._considered and self._is_in(LOST, fact)):
            return
        seen: set[Derivation] = set()
        row = self.instance.rows.to_engine(*fact)
        trusted = f"{fact.relation}.{TRUSTED}"
        for marked in self._deriver.state.tables[trusted].lookup(tuple(range(len(row))), row):
            for firing in self._deriver.derivations(Fact(trusted, marked)):
                # A rule with alternatives has become several.
                mapping = self._mappings[firing.rule.partition("/")[0]]
                made = self._derivation(mapping, fact, firing.body[0].tuple)
                if made not in seen:  # the same with other marks
                    seen.add(made)
                    yield made

    def _derivation(self, mapping: SchemaMapping, fact: Fact, row: Tuple) -> Derivation:
        values = self.values_of(mapping, row)
        body = tuple(Fact(atom.relation, instantiate(mapping, atom, values)) for atom in mapping.atoms)
        return Derivation(mapping.name, fact, body)

    def values_of(self, mapping: SchemaMapping, row: Tuple) -> dict[str, Value]:
        """A row of a mapping's derivations, as the engine has it, by variable."""
        columns = self.instance.compiled.columns[mapping.name]
        user = self.instance.rows.from_engine(row, len(columns))
        return {name: value for (name, _, _), value in zip(columns, user, strict=True)}


def cost_in_eyes_of(instance: Instance, peer: str) -> tuple[Callable[[Fact], float], dict[str, float]]:
    """What base rows cost the peer, and what mappings do. All charges for the same add up."""
    confederation = instance.confederation
    charges: Counter[str] = Counter()
    rows: list[tuple[str, str, float]] = []
    for at, charge in enumerate(confederation.charges):
        if charge.peer == peer and charge.rows is not None:
            rows.append((charge.rows.relation, charged(at), charge.cost))
        elif charge.peer == peer and charge.subject is not None:
            charges[charge.subject] += charge.cost  # type: ignore[assignment]
    for preference in confederation.preferences:
        if preference.peer == peer:
            charges.update({subject: PLACE * at for at, subject in enumerate(preference.subjects)})
    rules = {mapping.name: float(charges[original_name(mapping)]) for mapping in confederation.mappings.values()}
    session = instance.session if rows else None

    def cost(fact: Fact) -> float:
        found = float(charges[peer_of(fact.relation)])
        for relation, table, each in rows:
            if relation == fact.relation and session is not None:
                found += each * (instance.rows.to_engine(*fact) in session.relation(table))
        return found

    return cost, rules


def costs(instance: Instance, peer: str, facts: Iterable[Fact]) -> dict[Fact, float]:
    """What rows cost in trust: the cheapest derivation counts, and in it every base row and mapping is paid for."""
    roots = list(facts)
    graph = derivation_graph(ExchangeDerivations(instance, roots), roots)
    annotate, rules = cost_in_eyes_of(instance, peer)
    solved = solve_graph(graph, Tropical(), annotate, rules=rules)
    return {fact: solved[fact] for fact in roots}


# -- the graph as something to ask ------------------------------------------------------------------------------------


def restrict(
    graph: DerivationGraph, *, mappings: Iterable[str] | None = None, peers: Iterable[str] | None = None
) -> DerivationGraph:
    """Only the derivations by these mappings, and only from base rows of these peers."""
    allowed = None if mappings is None else set(mappings)
    sources = None if peers is None else set(peers)
    kept = {
        fact: tuple(each for each in firings if allowed is None or each.rule in allowed)
        for fact, firings in graph.derivations.items()
    }
    base = frozenset(fact for fact in graph.base if sources is None or peer_of(fact.relation) in sources)
    return replace(graph, derivations={fact: each for fact, each in kept.items() if each}, base=base)


def paths(graph: DerivationGraph, fact: Fact, source: Fact) -> list[list[str]]:
    """The mappings on the ways from a row up to one that it helps to derive, no row twice; the shortest first."""
    found: list[list[str]] = []
    waiting: deque[tuple[Fact, list[str], frozenset[Fact]]] = deque([(fact, [], frozenset({fact}))])
    while waiting:
        here, names, seen = waiting.popleft()
        if here == source:
            found.append(names[::-1])
            continue
        for firing in graph.derivations.get(here, ()):
            for premise in dict.fromkeys(firing.body):
                if premise not in seen:
                    waiting.append((premise, [*names, firing.rule], seen | {premise}))
    return found


def uses(instance: Instance, fact: Fact) -> dict[Fact, tuple[str, ...]]:
    """The rows that some derivation from this one leads to, with the mappings on the shortest way there."""
    users: dict[Fact, list[tuple[str, Fact]]] = {}
    for mapping in instance.confederation.mappings.values():
        names = [name for name, _, _ in instance.compiled.columns[mapping.name]]
        for row in instance.derivations(mapping.name):
            values = dict(zip(names, row, strict=True))
            heads = [Fact(head.relation, instantiate(mapping, head, values)) for head in mapping.heads]
            for atom in mapping.atoms:
                source = Fact(atom.relation, instantiate(mapping, atom, values))
                users.setdefault(source, []).extend((mapping.name, head) for head in heads)
    found: dict[Fact, tuple[str, ...]] = {}
    waiting: deque[tuple[Fact, tuple[str, ...]]] = deque([(fact, ())])
    while waiting:
        here, way = waiting.popleft()
        for name, head in users.get(here, ()):
            if head not in found and head != fact and instance.holds(*head):
                found[head] = (*way, name)
                waiting.append((head, found[head]))
    return found


# -- why not ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Reason:
    """Why a row is not there: what kind of reason, in words, and the reasons behind it."""

    kind: str  # rejected, lost, withdrawn, distrusted, missing, unmapped
    text: str
    behind: tuple[Reason, ...] = ()

    def lines(self, indent: str = "") -> Iterator[str]:
        yield f"{indent}{self.text}"
        for reason in self.behind:
            yield from reason.lines(f"{indent}  ")


def whynot(instance: Instance, relation: str, row: Tuple, *, depth: int = _DEEPEST) -> list[Reason]:
    """Why a row is not there. Empty if it is."""
    if instance.holds(relation, row):
        return []
    instance.rows.to_engine(relation, row)  # raises ValueError for what cannot be a row
    return _WhyNot(instance).ask(Fact(relation, row), depth)


class _WhyNot:
    def __init__(self, instance: Instance) -> None:
        self.instance = instance
        self.asked: set[Fact] = set()
        self._held: dict[str, list[Tuple]] = {}

    def ask(self, fact: Fact, depth: int) -> list[Reason]:
        self.asked.add(fact)
        owner, shown = peer_of(fact.relation), show_row(*fact)
        found = list(self._decisions(fact, owner, shown))
        made = list(self._untrusted(fact))
        found += made
        if found:
            return found
        for mapping in self.instance.confederation.mappings.values():
            for head in mapping.heads:
                if head.relation == fact.relation:
                    found += self._attempts(mapping, head, fact, depth)
        if not found:
            found.append(Reason("unmapped", f"{owner} does not have {shown}, and no mapping could bring it"))
        return found

    def _decisions(self, fact: Fact, owner: str, shown: str) -> Iterator[Reason]:
        if fact.tuple in self.instance.part(fact.relation, REJECTED):
            yield Reason("rejected", f"{owner} rejected {shown}")
        if fact.tuple in self.instance.part(fact.relation, LOST):
            relation = self.instance.confederation.relations[fact.relation]
            rivals = [
                row
                for row in self.instance.relation(fact.relation)
                if all(row[at] == fact.tuple[at] for at in relation.key)
            ]
            against = f" to {show_row(fact.relation, rivals[0])}" if rivals else ", which is not resolved yet"
            yield Reason("lost", f"{shown} lost a conflict at {owner}{against}")
        withdrawn = f"{fact.relation}.{WITHDRAWN}"
        if withdrawn in self.instance.compiled.program.relations:
            row = self.instance.rows.to_engine(*fact)
            if row in set(self.instance.session.relation(withdrawn)):
                yield Reason("withdrawn", f"a peer that got {shown} from {owner} rejected it, and {owner} accepts that")

    def _untrusted(self, fact: Fact) -> Iterator[Reason]:
        """Derivations that are there, but that the row's peer does not count."""
        session, compiled = self.instance.session, self.instance.compiled
        derivations = ExchangeDerivations(self.instance)
        told: set[tuple[str, str]] = set()
        for mapping in self.instance.confederation.mappings.values():
            for number, head in enumerate(mapping.heads, 1):
                judges = compiled.judges[mapping.name, number]
                if head.relation != fact.relation or not judges:
                    continue
                for row in session.relation(table_of(mapping.name)):
                    values = derivations.values_of(mapping, row)
                    if instantiate(mapping, head, values) != fact.tuple:
                        continue
                    policy = self._judge(judges, row)
                    if (mapping.name, policy.name) not in told:
                        told.add((mapping.name, policy.name))
                        text = self.instance.confederation.text_of(policy.span)
                        yield Reason(
                            "distrusted", f"{mapping.name} brings {show_row(*fact)}, but by {policy.name}: {text}"
                        )

    def _judge(self, judges: tuple[tuple[Distrust, str | None], ...], row: Tuple) -> Distrust:
        """The policy that did not let a derivation pass: the first whose table lacks it."""
        for policy, accepted in judges:
            if accepted is None or row not in self.instance.session.relation(accepted):
                return policy
        raise AssertionError("the last judge has no table")

    def _attempts(self, mapping: SchemaMapping, head: tree.Atom, fact: Fact, depth: int) -> list[Reason]:
        values = unify(mapping, head, fact.tuple)
        if values is None:
            return []
        found: list[Reason] = []
        shown = show_row(*fact)
        for held in self._complete(mapping, values):
            behind = tuple(reason for each in held for reason in self._behind(each, depth))
            needed = " and ".join(show_row(*each) for each in held)
            found.append(Reason("missing", f"{mapping.name} would bring {shown} from {needed}", behind))
        if found:
            return found[:3]
        for atom in mapping.atoms:
            if not any(unify_row(atom, row, values) is not None for row in self.instance.relation(atom.relation)):
                pattern = ", ".join(_shown(arg, values) for arg in atom.args)
                text = f"{mapping.name} would bring {shown}, but there is no {atom.relation}({pattern})"
                bound = all(not isinstance(arg, tree.Variable) or arg.name in values for arg in atom.args)
                behind = ()
                if bound:
                    behind = tuple(self._behind(Fact(atom.relation, instantiate(mapping, atom, values)), depth))
                return [Reason("missing", text, behind)]
        return [
            Reason("missing", f"{mapping.name} would bring {shown}, but its rows and conditions do not fit together")
        ]

    def _behind(self, fact: Fact, depth: int) -> list[Reason]:
        return [] if fact in self.asked or depth <= 1 else self.ask(fact, depth - 1)

    def _complete(self, mapping: SchemaMapping, values: dict[str, Value]) -> Iterator[list[Fact]]:
        """Ways to make the body hold with rows that are held back: rejected, distrusted, or lost."""
        ways: list[tuple[dict[str, Value], list[Fact]]] = [(values, [])]
        for atom in mapping.atoms:
            further: list[tuple[dict[str, Value], list[Fact]]] = []
            for known, held in ways:
                for row in self.instance.relation(atom.relation):
                    if (extended := unify_row(atom, row, known)) is not None:
                        further.append((extended, held))
                for row in self._held_back(atom.relation):
                    if (extended := unify_row(atom, row, known)) is not None:
                        further.append((extended, [*held, Fact(atom.relation, row)]))
            ways = further
        for _, held in ways:
            if held:
                yield held

    def _held_back(self, relation: str) -> list[Tuple]:
        if relation not in self._held:
            self._held[relation] = list(self.instance.inputs(relation) - self.instance.relation(relation))
        return self._held[relation]


def unify(mapping: SchemaMapping, atom: tree.Atom, row: Tuple) -> dict[str, Value] | None:
    """The variables under which a head of a mapping is a row; an invented value tells what it was made of."""
    values: dict[str, Value] = {}
    for arg, value in zip(atom.args, row, strict=True):
        if isinstance(arg, tree.Variable) and arg.name in mapping.exists:
            made = getattr(value, "args", None)
            if made is None or getattr(value, "branch", "") != f"{mapping.name}_{arg.name}":
                return None
            pairs = list(zip(mapping.shared, made, strict=True))
        elif isinstance(arg, tree.Variable):
            pairs = [(arg.name, value)]
        else:
            assert isinstance(arg, tree.Number | tree.String)
            if arg.value != value:
                return None
            pairs = []
        for name, each in pairs:
            if values.setdefault(name, each) != each:
                return None
    return values


def unify_row(atom: tree.Atom, row: Tuple, values: Mapping[str, Value]) -> dict[str, Value] | None:
    extended = dict(values)
    for arg, value in zip(atom.args, row, strict=True):
        if isinstance(arg, tree.Variable):
            if extended.setdefault(arg.name, value) != value:
                return None
        elif isinstance(arg, tree.Number | tree.String) and arg.value != value:
            return None
    return extended


def _shown(arg: tree.Term, values: Mapping[str, Value]) -> str:
    if isinstance(arg, tree.Variable):
        return show_row("", (values[arg.name],))[1:-1] if arg.name in values else "_"
    assert isinstance(arg, tree.Number | tree.String)
    return show_row("", (arg.value,))[1:-1]
