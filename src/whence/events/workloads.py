"""Made-up events for the applications: the same seed gives the same routes, names, machines and requests."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from random import Random

from whence.lang.types import Tuple, Value

Facts = dict[str, set[Tuple]]
_WORDS = (
    "GET POST PUT index html image cart order user session token price stock item page search query result count limit offset "
    "true false null host agent accept encoding language cookie cache control length content type json text length date"
).split()


@dataclass(frozen=True)
class Workload:
    """Slow tuples, and events in their order."""

    facts: Facts
    events: list[Tuple]


def routes_of(links: Iterable[tuple[str, str]], down: Iterable[tuple[str, str]] = ()) -> set[Tuple]:
    """Routes along shortest ways, over links that work both ways: for each node and destination the next node."""
    neighbours: dict[str, list[str]] = {}
    broken = {frozenset(link) for link in down}
    for one, other in links:
        if frozenset((one, other)) not in broken:
            neighbours.setdefault(one, []).append(other)
            neighbours.setdefault(other, []).append(one)
    routes: set[Tuple] = set()
    for destination in neighbours:
        met, pending = {destination}, deque([destination])
        while pending:
            at = pending.popleft()
            for other in sorted(neighbours[at]):
                if other not in met:
                    met.add(other)
                    pending.append(other)
                    routes.add((other, destination, at))
    return routes


def packets(links: Iterable[tuple[str, str]], *, pairs: int, each: int, payload: int = 500, seed: int = 0) -> Workload:
    """Packets between random pairs of nodes, in random order, with payloads of words as applications send them."""
    draw = Random(seed)  # noqa: S311 - repeatable, not secret
    listed = list(links)
    nodes = sorted({node for link in listed for node in link})
    ends = [tuple(draw.sample(nodes, 2)) for _ in range(pairs)]
    sent = [(source, source, target, text(draw, payload)) for source, target in ends for _ in range(each)]
    draw.shuffle(sent)
    return Workload({"route": routes_of(listed)}, list(sent))


def text(draw: Random, length: int) -> str:
    """Words and numbers, cut to length."""
    found: list[str] = []
    size = 0
    while size < length:
        word = draw.choice(_WORDS) if draw.random() < 0.8 else str(draw.randrange(1_000_000))
        found.append(word)
        size += len(word) + 1
    return " ".join(found)[:length]


def zipf(draw: Random, items: list[str], exponent: float) -> Iterator[str]:
    """Items, endlessly, the first ones most often."""
    weights = [1 / (rank**exponent) for rank in range(1, len(items) + 1)]
    while True:
        yield from draw.choices(items, weights, k=1_000)


def names(
    *, servers: int = 100, urls: int = 38, hosts: int = 10, requests: int = 1_000, depth: int = 27, seed: int = 0
) -> Workload:
    """A tree of name servers with one long branch, hosts that ask its root, and requests for few names often."""
    draw = Random(seed)  # noqa: S311
    domain = {"root": ""}
    delegates: set[Tuple] = set()
    spine = ["root"]
    for number in range(1, servers):
        parent = spine[-1] if len(spine) < depth else draw.choice(sorted(domain))
        server = f"ns{number}"
        domain[server] = f"d{number}.{domain[parent]}" if domain[parent] else f"d{number}"
        delegates.add((parent, domain[server], server))
        if len(spine) < depth:
            spine.append(server)
    places = draw.sample(sorted(set(domain) - {"root"}), urls)
    addresses = {(server, f"www.{domain[server]}", f"10.0.{at // 250}.{at % 250}") for at, server in enumerate(places)}
    listed = [f"www.{domain[server]}" for server in places]
    clients = [f"h{at}" for at in range(hosts)]
    wanted = zipf(draw, listed, 1.0)
    events = [(draw.choice(clients), next(wanted), number) for number in range(requests)]
    asks = {(host, url) for host in clients for url in listed}
    facts: Facts = {
        "root": {(host, "root") for host in clients},
        "delegates": delegates,
        "address": set(addresses),
        "asks": set(asks),
        "keeps": set(),
    }
    return Workload(facts, list(events))


def is_below(url: str, domain: str) -> int:
    """Whether a name belongs to a domain."""
    return int(url == domain or url.endswith(f".{domain}"))


def machines(*, relays: int = 4, each: int = 12, requests: int = 200, seed: int = 0) -> Workload:
    """Machines on segments that ask for addresses; two servers hold leases, the second as a reserve for some."""
    draw = Random(seed)  # noqa: S311
    clients = {f"pc{number}": f"relay{number % relays}" for number in range(relays * each)}
    cards = {client: f"02:00:00:00:{number // 256:02x}:{number % 256:02x}" for number, client in enumerate(clients)}
    facts: Facts = {
        "relay": set(clients.items()),
        "server": {(relay, server) for relay in clients.values() for server in ("dhcp1", "dhcp2")},
        "lease": {("dhcp1", card, f"10.1.0.{number + 1}") for number, card in enumerate(cards.values())},
    }
    facts["lease"] |= {
        ("dhcp2", card, f"10.2.0.{number + 1}") for number, card in enumerate(cards.values()) if number % 5 == 0
    }
    asking = draw.choices(sorted(clients), k=requests)
    return Workload(facts, [(client, cards[client], number) for number, client in enumerate(asking)])


def neighbours(*, segments: int = 3, each: int = 8, requests: int = 200, seed: int = 0) -> Workload:
    """Hosts on switches that ask who has an address of their segment; a few ask for one that nobody has."""
    draw = Random(seed)  # noqa: S311
    facts: Facts = {"switch": set(), "port": set(), "owns": set()}
    on: dict[str, list[str]] = {}
    for number in range(segments * each):
        host, switch = f"host{number}", f"switch{number % segments}"
        on.setdefault(switch, []).append(host)
        facts["switch"].add((host, switch))
        facts["port"].add((switch, host))
        facts["owns"].add((host, f"10.0.{number % segments}.{number}", f"02:00:00:00:00:{number:02x}"))
    events: list[Tuple] = []
    for number in range(requests):
        switch = draw.choice(sorted(on))
        asker, asked = draw.sample(on[switch], 2)
        segment = switch.removeprefix("switch")
        address = f"10.0.{segment}.{asked.removeprefix('host')}" if draw.random() < 0.97 else f"10.0.{segment}.250"
        events.append((asker, address, number))
    return Workload(facts, events)


@dataclass(frozen=True)
class Span:
    """A piece of a distributed trace, as tracing libraries report it."""

    trace: str
    span: str
    parent: str | None
    service: str
    name: str
    attributes: Mapping[str, str | int]


_CALLS = {
    ("gateway", "checkout"): [("cart", "read"), ("payment", "charge"), ("shipping", "quote")],
    ("gateway", "browse"): [("catalogue", "list"), ("price", "quote")],
    ("cart", "read"): [("catalogue", "item")],
    ("payment", "charge"): [("fraud", "score"), ("ledger", "book")],
    ("shipping", "quote"): [("warehouse", "stock")],
    ("catalogue", "list"): [("search", "query")],
    ("price", "quote"): [("ledger", "rate")],
}


def mesh(*, requests: int = 200, tenants: int = 5, seed: int = 0) -> tuple[Workload, list[Span]]:
    """Requests to the gateway of a shop made of services, and the spans that a tracer saw of them."""
    draw = Random(seed)  # noqa: S311
    endpoints = set(_CALLS) | {call for calls in _CALLS.values() for call in calls}
    services = sorted({service for service, _ in endpoints})
    facts: Facts = {
        "handles": {
            (service, name, callee[1], callee[0]) for (service, name), calls in _CALLS.items() for callee in calls
        },
        "deployed": {(service, f"v{1 + at % 3}") for at, service in enumerate(services)},
        "answers": {(service, name, 200) for service, name in endpoints},
        "limit": {("gateway", f"tenant{number}", "gold" if number == 0 else "free") for number in range(tenants)},
    }
    versions = {row[0]: row[1] for row in facts["deployed"]}
    events: list[Tuple] = []
    spans: list[Span] = []
    for number in range(requests):
        trace = f"{draw.getrandbits(64):016x}"
        endpoint = draw.choice(["checkout", "browse", "browse", "browse"])
        tenant = f"tenant{draw.randrange(tenants)}"
        events.append(("gateway", endpoint, tenant, trace))
        spans += _trace(trace, endpoint, tenant, versions, number)
    return Workload(facts, events), spans


def _trace(trace: str, endpoint: str, tenant: str, versions: Mapping[Value, Value], number: int) -> Iterator[Span]:
    pending: deque[tuple[str, str, str | None]] = deque([("gateway", endpoint, None)])
    count = 0
    while pending:
        service, name, parent = pending.popleft()
        count += 1
        span = f"{number:08x}{count:08x}"
        version = str(versions[service])
        yield Span(trace, span, parent, service, name, {"version": version, "status": 200, "tenant": tenant})
        pending.extend((callee, called, span) for callee, called in _CALLS.get((service, name), ()))


def from_spans(spans: Iterable[Span]) -> tuple[list[Tuple], Facts]:
    """What spans tell: the requests they began with, and which service called and ran what."""
    by_id = {each.span: each for each in spans}
    events: list[Tuple] = []
    facts: Facts = {"handles": set(), "deployed": set(), "answers": set(), "limit": set()}
    for each in by_id.values():
        facts["deployed"].add((each.service, each.attributes["version"]))
        facts["answers"].add((each.service, each.name, each.attributes["status"]))
        if each.parent is None:
            events.append((each.service, each.name, each.attributes["tenant"], each.trace))
            facts["limit"].add((each.service, each.attributes["tenant"], "known"))
        else:
            caller = by_id[each.parent]
            facts["handles"].add((caller.service, caller.name, each.name, each.service))
    return events, facts
