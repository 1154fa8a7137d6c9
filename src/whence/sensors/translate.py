"""A program for a field: where tuples live, where they are stored and look for partners, rule by rule.

A rule is evaluated in one of two ways. At a *site*: all partners come to one node, which the rule's own values name
(the node of an argument marked @, the node nearest to a place, a node by hash), and what happens there happens in the
order of arrival. In
*regions*: every tuple is stored in one region of the field, and looks for its partners in another; whatever can be
joined has to meet.

For each pair of occurrences of a rule, the join region of the one meets the storage region of the other wherever the two can
satisfy the rule (`broken_pair` looks for one that does not).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from dataclasses import field as with_default
from enum import StrEnum
from itertools import combinations, product
from math import inf

from whence.lang.program import Atom, Const, Program, Rule, Term, Var
from whence.lang.types import Tuple, Value
from whence.plan.extract_aggregates import AggregateSpec, extract_aggregates
from whence.sensors.classes import check_program, find_growing
from whence.sensors.pragmas import find_bounds, find_sketches
from whence.sensors.regions import Region, Regions
from whence.sensors.rules import Body, NotForSensors, body_of, columns_of, place_in, variables_of
from whence.sensors.spatial import find_coordinates, find_reaches
from whence.topology.field import Field

LINK = "link"
_COMBINATIONS = 5000


class Scheme(StrEnum):
    AUTO = "auto"
    PERPENDICULAR = "perpendicular"
    BROADCAST = "broadcast"
    LOCAL = "local"
    ONE_HOP = "one-hop"
    HASHED = "hashed"
    CENTRAL = "central"


REGIONS: Mapping[Scheme, tuple[Region, Region]] = {
    Scheme.PERPENDICULAR: (Region.ROW, Region.COLUMN),
    Scheme.BROADCAST: (Region.ALL, Region.SELF),
    Scheme.LOCAL: (Region.SELF, Region.ALL),
}


@dataclass(frozen=True, slots=True)
class Home:
    """Which node tuples belong to: the one that a column names, the one nearest to a place, one by hash, or the server."""

    how: str  # "named", "nearest", "hashed", "server"
    columns: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Site:
    """Where a rule is evaluated: at the source of its only tuple ("self"), or at what `names` (variables) or a constant say."""

    how: str  # "self", "named", "nearest", "hashed", "server"
    names: tuple[str, ...] = ()
    node: Value = None


@dataclass(frozen=True)
class RulePlan:
    """`regions` are the storage and join region of each occurrence, `reaches` how far its partners are at most."""

    body: Body
    scheme: Scheme
    site: Site | None = None
    regions: tuple[tuple[Region, Region], ...] = ()
    reaches: tuple[float, ...] = ()
    several_passes: bool = False  # one atom is joined a walk, instead of all on one

    @property
    def walks(self) -> int:
        """How often an update goes along its join region, at most; one of what is negated has an atom more to join with."""
        others = len(self.body.atoms) - (not self.body.negated)
        return (max(1, others) if self.several_passes else 1) + bool(self.body.negated)

    @property
    def goes_both_ways(self) -> bool:
        """Whether one partner is all that an update looks for: it then walks from where it is, not from an end of the way."""
        return len(self.body.atoms) == 2 and not self.body.negated

    @property
    def rule(self) -> Rule:
        return self.body.rule


@dataclass(frozen=True, slots=True)
class Delivery:
    """Whom a tuple is told besides its home: all neighbours, the server, or the node that some columns say."""

    how: str  # "neighbours", "nearest", "hashed", "server"
    columns: tuple[int, ...] = ()


@dataclass(frozen=True)
class SensorProgram:
    """What every node runs. `growing` are relations from which nothing may be taken, with the recursion that is the reason."""

    program: Program
    field: Field
    regions: Regions
    homes: Mapping[str, Home]
    plans: tuple[RulePlan, ...]
    aggregates: Mapping[str, AggregateSpec]
    growing: Mapping[str, str]
    server: Value
    links: str | None
    stages: Mapping[
        str, tuple[int, int, int]
    ]  # of a staged relation: its column, its turn in a stage, and how many turns there are
    traffic: float = 0.0  # the estimate it was chosen by: messages for one tuple of each base relation
    deliveries: Mapping[str, frozenset[Delivery]] = with_default(default_factory=dict)
    # By relation: in which regions it is stored, and how far.
    storage: Mapping[str, Mapping[Region, float]] = with_default(default_factory=dict)
    coordinates: Mapping[str, tuple[int, int]] = with_default(default_factory=dict)
    sketches: Mapping[str, int] = with_default(
        default_factory=dict
    )  # groups that are estimated, with so many registers

    def spot(self, relation: str, row: Tuple) -> tuple[float, float] | None:
        """Where a tuple says that it is."""
        columns = self.coordinates.get(relation)
        return None if columns is None else (row[columns[0]], row[columns[1]])  # type: ignore[return-value]

    def home(self, relation: str, row: Tuple) -> Value:
        home = self.homes[relation]
        if home.how == "named":
            return row[home.columns[0]]
        return self.node_for(home.how, tuple(row[at] for at in home.columns))

    def node_for(self, how: str, values: tuple[Value, ...]) -> Value:
        match how:
            case "nearest":
                x, y = values
                return self.field.nearest((x, y))  # type: ignore[arg-type]
            case "hashed":
                return self.field.hashed(values)
            case _:
                return self.server

    @property
    def region_plans(self) -> list[RulePlan]:
        return [plan for plan in self.plans if plan.site is None]


@dataclass(frozen=True)
class Choices:
    """What the user decides: a scheme for all rules or by rule; by relation its hash attributes, its regions, its rate."""

    scheme: Scheme = Scheme.AUTO
    schemes: Mapping[str, Scheme] = with_default(default_factory=dict)
    homes: Mapping[str, tuple[str, ...]] = with_default(default_factory=dict)
    regions: Mapping[str, tuple[Region, Region]] = with_default(default_factory=dict)
    rates: Mapping[str, float] = with_default(default_factory=dict)
    clipping: bool = True
    several_passes: bool | None = None  # where conditions leave it open what goes together, unless told
    links: str = LINK
    server: Value = None

    def of(self, rule: str) -> Scheme:
        return self.schemes.get(rule, self.scheme)


def translate(program: Program, field: Field, choices: Choices = Choices()) -> SensorProgram:  # noqa: B008 - immutable
    """What nodes run for a program. Raises `NotForSensors` for what cannot be, and for choices that would miss a pair."""
    check_program(program)
    growing = find_growing(program)
    extracted, aggregates = extract_aggregates(program, frozenset(program.relations))
    return _Translation(extracted, field, choices, aggregates, growing).best()


class _Translation:
    def __init__(
        self,
        program: Program,
        field: Field,
        choices: Choices,
        aggregates: Mapping[str, AggregateSpec],
        growing: Mapping[str, str],
    ) -> None:
        self.program = program
        self.field = field
        self.choices = choices
        self.aggregates = aggregates
        self.growing = growing
        self.coordinates = find_coordinates(program)
        self.sketches = find_sketches(program, aggregates)
        self.bounds = find_bounds(program)
        self.locations = {name: relation.location for name, relation in program.relations.items()}
        self.server = field.centre if choices.server is None else choices.server
        if self.server not in field.places:
            raise NotForSensors(f"there is no node {self.server} to be the server", "name one of the field")
        # Rules that read nothing are facts, which are worked out at the beginning.
        self.bodies = [body for rule in program.rules if not rule.is_fact and (body := body_of(rule)).reads]
        for body in self.bodies:
            if not body.atoms:
                raise NotForSensors(
                    f"rule {body.rule.name} reads only what is not there: no update would tell a node to look",
                    "join it with something that is",
                )
        self.regions = Regions(field)
        self.links = choices.links if self._has_links(choices.links) else None
        distances = field.distances(field.centre)
        self.far = 4 / 3 * sum(distances.values()) / len(distances)  # between two nodes at random, about
        self._check_choices()

    def _has_links(self, name: str) -> bool:
        relation = self.program.relations.get(name)
        return relation is not None and relation.arity == 2 and relation.location is not None

    def _check_choices(self) -> None:
        known = {body.rule.name for body in self.bodies}
        for rule in self.choices.schemes:
            if rule not in known:
                raise NotForSensors(f"there is no rule {rule}", f"the program has {', '.join(sorted(known))}")
        for name, columns in self.choices.homes.items():
            relation = self.program.relations.get(name)
            if relation is None:
                raise NotForSensors(f"there is no relation {name} to hash")
            unknown = set(columns) - {each.name for each in relation.fields}
            if unknown or not columns:
                raise NotForSensors(
                    f"{name} has no column {', '.join(sorted(unknown)) or 'to hash by'}",
                    f"it has {', '.join(each.name for each in relation.fields)}",
                )

    # -- homes

    def best(self) -> SensorProgram:
        """Of all homes that derived relations can have, those that are estimated to send least."""
        derived = {body.rule.head.relation for body in self.bodies} | set(self.aggregates)
        options = {name: self._homes(name, is_derived=name in derived) for name in self.program.relations}
        open_ = [name for name, found in options.items() if len(found) > 1]
        first = {name: found[0] for name, found in options.items()}
        size = 1
        for name in open_:
            size *= len(options[name])
        if size <= _COMBINATIONS:
            tried: Iterable[dict[str, Home]] = (
                first | dict(zip(open_, each, strict=True)) for each in product(*(options[name] for name in open_))
            )
            return self._finish(min(tried, key=lambda homes: self._traffic(homes)[0]))
        for name in open_:  # one after the other
            first = min(({**first, name: home} for home in options[name]), key=lambda homes: self._traffic(homes)[0])
        return self._finish(first)

    def _homes(self, name: str, *, is_derived: bool) -> list[Home]:
        relation = self.program.relations[name]
        everything = tuple(range(relation.arity))
        if relation.location is not None:
            return [Home("named", (relation.location,))]
        if name in self.choices.homes:
            names = [each.name for each in relation.fields]
            return [Home("hashed", tuple(sorted(names.index(each) for each in self.choices.homes[name])))]
        if self.choices.scheme is Scheme.CENTRAL and is_derived:
            return [Home("server")]
        found = [Home("nearest", self.coordinates[name])] if name in self.coordinates else []
        if found and not is_derived:
            return found
        keys = {everything} if everything else set()
        if is_derived:
            for body in self.bodies:
                for atom in body.reads:
                    if atom.relation == name:
                        keys |= {tuple(sorted(key)) for names in self._keys(body) if (key := columns_of(atom, names))}
        return [*found, *(Home("hashed", key) for key in sorted(keys, key=lambda key: (-len(key), key)))] or [
            Home("hashed")
        ]

    def _keys(self, body: Body) -> Iterator[tuple[str, ...]]:
        """Variables that all atoms of a rule have: all of them, and fewer, which more relations may have in common."""
        shared = [
            name for name in variables_of(body.reads[0]) if all(name in variables_of(atom) for atom in body.reads)
        ]
        for size in range(len(shared), 0, -1):
            yield from combinations(shared, size)

    # -- schemes

    def _traffic(self, homes: Mapping[str, Home]) -> tuple[float, list[RulePlan]]:
        total, plans = 0.0, []
        for body in self.bodies:
            cost, plan = self._cheapest(body, homes)
            total += cost
            plans.append(plan)
        return total, plans

    def _cheapest(self, body: Body, homes: Mapping[str, Home]) -> tuple[float, RulePlan]:
        asked = self.choices.of(body.rule.name)
        found = list(self._possible(body, asked, homes))
        if not found:
            raise NotForSensors(self._why_not(body, asked), "leave the scheme to be chosen, or name another")
        return min(found, key=lambda each: each[0])

    def _possible(self, body: Body, asked: Scheme, homes: Mapping[str, Home]) -> Iterator[tuple[float, RulePlan]]:
        if asked is Scheme.CENTRAL:
            yield self._at_site(body, Scheme.CENTRAL, Site("server"), homes)
            return
        overridden = any(atom.relation in self.choices.regions for atom in body.reads)
        local = self._local(body)
        if local is not None and not overridden:
            yield self._at_site(body, Scheme.ONE_HOP, local, homes)
            if local.how == "self":
                return
        if asked in (Scheme.AUTO, Scheme.ONE_HOP) and not overridden and (site := self._one_hop(body)) is not None:
            yield self._at_site(body, Scheme.ONE_HOP, site, homes)
        if asked in (Scheme.AUTO, Scheme.HASHED) and not overridden:
            for names in self._keys(body):
                yield self._at_site(body, Scheme.HASHED, self._key_site(body, names), homes)
        if asked in REGIONS or asked is Scheme.AUTO:
            yield self._in_regions(body, asked if asked in REGIONS else Scheme.PERPENDICULAR)

    def _local(self, body: Body) -> Site | None:
        """A rule that every node evaluates on what it has."""
        if len(body.reads) == 1 and body.atoms:
            return Site("self")
        places = {place_in(atom, self.locations) for atom in body.reads}
        only = next(iter(places)) if len(places) == 1 else None
        return self._named(only)

    def _named(self, place: Term | None) -> Site | None:
        match place:
            case Var(name=name):
                return Site("named", (name,))
            case Const(value=value):
                return Site("named", (), value)
            case _:
                return None

    def _one_hop(self, body: Body) -> Site | None:
        """A rule whose tuples are all at a node or at neighbours that a link at that node names."""
        links = [atom for atom in body.atoms if atom.relation == self.links]
        for link in links:
            site = place_in(link, self.locations)
            beside = {each for atom in links if place_in(atom, self.locations) == site for each in atom.args} | {site}
            if isinstance(site, Var) and all(place_in(atom, self.locations) in beside for atom in body.reads):
                return self._named(site)
        return None

    def _key_site(self, body: Body, names: tuple[str, ...]) -> Site:
        spots = {self._spot(atom) for atom in body.reads}
        spot = next(iter(spots)) if len(spots) == 1 else None
        return Site("nearest", spot) if spot is not None and set(spot) <= set(names) else Site("hashed", names)

    def _spot(self, atom: Atom) -> tuple[str, ...] | None:
        columns = self.coordinates.get(atom.relation)
        found = [] if columns is None else [atom.args[at] for at in columns]
        named = tuple(each.name for each in found if isinstance(each, Var))
        return named if len(named) == 2 else None

    def _at_site(self, body: Body, scheme: Scheme, site: Site, homes: Mapping[str, Home]) -> tuple[float, RulePlan]:
        cost = 0.0
        for atom in body.reads:
            delivery = delivery_of(atom, site, self.locations)
            if delivery is not None:
                is_there = delivers_home(delivery, homes[atom.relation])
                cost += self._rate(atom) * (1.0 if delivery.how == "neighbours" else 0.0 if is_there else self.far)
        return cost + self._home_cost(body, site, homes), RulePlan(body, scheme, site)

    def _home_cost(self, body: Body, site: Site | None, homes: Mapping[str, Home]) -> float:
        if site is not None and derives_at_home(body, site, homes):
            return 0.0
        near = homes[body.rule.head.relation].how == "nearest" and (site is None or site.how == "nearest")
        return 1.0 if near else self.far

    def _in_regions(self, body: Body, scheme: Scheme) -> tuple[float, RulePlan]:
        clip = scheme is Scheme.PERPENDICULAR and self.choices.clipping
        near = clip and all(self._is_near_home(atom.relation) for atom in body.reads)
        slack = self.field.sensing
        reaches = tuple(
            reach + slack if near and reach < inf else inf
            for reach in find_reaches(body, self.coordinates, self.bounds)
        )
        default = REGIONS[scheme]
        regions = tuple(self.choices.regions.get(atom.relation, default) for atom in body.reads)
        several = self.choices.several_passes
        plan = RulePlan(body, scheme, None, regions, reaches, not body.is_all_tied if several is None else several)
        cost = self.far
        for atom, (storage, join), reach in zip(body.reads, regions, reaches, strict=True):
            cost += self._rate(atom) * (
                self.regions.storage_cost(storage, reach)
                + self.regions.join_cost(join, reach, plan.walks, both_ways=plan.goes_both_ways)
            )
        return cost, plan

    def _is_near_home(self, name: str) -> bool:
        """Whether tuples are at the node nearest to where they say they are."""
        relation = self.program.relations[name]
        return name in self.coordinates and relation.location is None and name not in self.choices.homes

    def _rate(self, atom: Atom) -> float:
        return self.choices.rates.get(atom.relation, 1.0)

    def _why_not(self, body: Body, asked: Scheme) -> str:
        rule = body.rule.name
        if asked is Scheme.HASHED:
            return f"rule {rule}: its atoms have no variable in common that a hash could bring them together by"
        places = [(atom.relation, place_in(atom, self.locations)) for atom in body.reads]
        pair = " and ".join(f"a tuple of {name}" for name, _ in places[:2])
        return f"rule {rule}: {pair} may be at nodes that do not hear each other, so that one hop would miss them"

    # -- the whole

    def _finish(self, homes: Mapping[str, Home]) -> SensorProgram:
        traffic, plans = self._traffic(homes)
        for plan in plans:
            self._check_contract(plan)
        deliveries: dict[str, set[Delivery]] = {name: set() for name in self.program.relations}
        storage: dict[str, dict[Region, float]] = {name: {} for name in self.program.relations}
        for plan in plans:
            for at, atom in enumerate(plan.body.reads):
                if plan.site is not None:
                    delivery = delivery_of(atom, plan.site, self.locations)
                    if delivery is not None:
                        deliveries[atom.relation].add(delivery)
                else:
                    kind = plan.regions[at][0]
                    known = storage[atom.relation]
                    known[kind] = max(known.get(kind, 0.0), plan.reaches[at])
        stages: dict[str, tuple[int, int, int]] = {}
        for stratum in self.program.strata:
            for name, column in stratum.stages.items():
                turn = next(at for at, group in enumerate(stratum.groups) if name in group)
                stages[name] = (column, turn, len(stratum.groups))
        return SensorProgram(
            self.program,
            self.field,
            self.regions,
            homes,
            tuple(plans),
            self.aggregates,
            self.growing,
            self.server,
            self.links,
            stages,
            traffic,
            {name: frozenset(found) for name, found in deliveries.items()},
            storage,
            self.coordinates,
            self.sketches,
        )

    def _check_contract(self, plan: RulePlan) -> None:
        if plan.site is not None or not any(atom.relation in self.choices.regions for atom in plan.body.reads):
            return  # the schemes' own regions meet by construction
        for one, other in product(range(len(plan.regions)), repeat=2):
            if one != other and (pair := self.regions.broken_pair(plan.regions[one][1], plan.regions[other][0])):
                names = [plan.body.reads[at].relation for at in (one, other)]
                raise NotForSensors(
                    f"rule {plan.rule.name}: a tuple of {names[0]} at {pair[0]} looks for partners in {plan.regions[one][1]}, "
                    f"where one of {names[1]} at {pair[1]}, stored in {plan.regions[other][0]}, is not",
                    "every join region has to meet every storage region: row and column, all and self",
                )


def delivery_of(atom: Atom, site: Site, locations: Mapping[str, int | None]) -> Delivery | None:
    """Whom tuples of an atom have to be told so that the site has them; None if it has them anyway."""
    match site.how:
        case "self":
            return None
        case "named":
            place = place_in(atom, locations)
            is_there = (
                place.name in site.names if isinstance(place, Var) else isinstance(place, Const) and not site.names
            )
            return None if is_there else Delivery("neighbours")
        case "server":
            return Delivery("server")
        case _:
            columns = columns_of(atom, site.names)
            assert columns is not None
            return Delivery(site.how, columns)


def delivers_home(delivery: Delivery, home: Home) -> bool:
    """Whether what is told is there already: the node that it is told to is its home."""
    return delivery.how == home.how and set(delivery.columns) == set(home.columns)


def derives_at_home(body: Body, site: Site, homes: Mapping[str, Home]) -> bool:
    """Whether a rule derives its heads where they live."""
    head = body.rule.head
    home = homes[head.relation]
    args = [head.args[at] for at in home.columns]
    if site.how == "self":
        source = body.atoms[0]
        own = homes[source.relation]
        return own.how == home.how and own.how != "server" and [source.args[at] for at in own.columns] == args
    names = {arg.name for arg in args if isinstance(arg, Var)}
    return site.how == home.how and (home.how == "server" or (len(names) == len(args) and names == set(site.names)))
