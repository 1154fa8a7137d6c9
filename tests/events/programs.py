"""Event programs of the paper, and helpers to run them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from whence import load
from whence.events.program import EventProgram, event_program
from whence.events.questions import Questions
from whence.events.store import EventStore
from whence.events.walk import Walker
from whence.lang.types import Tuple
from whence.provenance.graph import Fact
from whence.provenance.proofs import Proof

PACKETS = """
.decl packet(@at:symbol, src:symbol, dst:symbol, data:symbol)
.decl route(@at:symbol, dst:symbol, next:symbol)
.decl recv(@at:symbol, src:symbol, dst:symbol, data:symbol)
.event packet
.input route
r1 packet(@N,S,D,DT) :- packet(@L,S,D,DT), route(@L,D,N).
r2 recv(@L,S,D,DT)   :- packet(@L,S,D,DT), D == L.
.output recv
"""
HOPPING = """
.decl packet(@at:symbol, src:symbol, dst:symbol, ttl:number, data:symbol)
.decl route(@at:symbol, dst:symbol, next:symbol)
.decl recv(@at:symbol, src:symbol, dst:symbol, data:symbol)
.event packet
.input route
r1 packet(@N,S,D,T2,DT) :- packet(@L,S,D,T,DT), route(@L,D,N), T > 0, T2 := T - 1.
r2 recv(@L,S,D,DT) :- packet(@L,S,D,_,DT), D == L.
.output recv
"""
DNS = """
.functor f_isSubDomain(symbol, symbol): number
.decl url(@host:symbol, url:symbol, id:number)
.decl request(@at:symbol, url:symbol, host:symbol, id:number)
.decl dnsResult(@at:symbol, url:symbol, address:symbol, host:symbol, id:number)
.decl reply(@host:symbol, url:symbol, address:symbol, id:number)
.decl rootServer(@host:symbol, root:symbol)
.decl nameServer(@at:symbol, domain:symbol, server:symbol)
.decl addressRecord(@at:symbol, url:symbol, address:symbol)
.event url
.slow rootServer, nameServer, addressRecord
r1 request(@RT,URL,HST,RQID) :- url(@HST,URL,RQID), rootServer(@HST,RT).
r2 request(@SV,URL,HST,RQID) :- request(@X,URL,HST,RQID), nameServer(@X,DM,SV), f_isSubDomain(DM,URL) == 1.
r3 dnsResult(@X,URL,IPADDR,HST,RQID) :- request(@X,URL,HST,RQID), addressRecord(@X,URL,IPADDR).
r4 reply(@HST,URL,IPADDR,RQID) :- dnsResult(@X,URL,IPADDR,HST,RQID).
.output reply
"""


def is_sub_domain(domain: str, url: str) -> int:
    return int(url == domain or url.endswith("." + domain))


def packets() -> EventProgram:
    return event_program(load(PACKETS))


def hopping() -> EventProgram:
    return event_program(load(HOPPING))


def dns() -> EventProgram:
    return event_program(load(DNS, functions={"f_isSubDomain": is_sub_domain}))


def packet(at: str, to: str, data: str) -> Tuple:
    return (at, at, to, data)


class Truth:
    """Every tree of every run, kept in memory: what stores are compared with."""

    def __init__(self, events: EventProgram, slow: Mapping[str, Iterable[Tuple]] | None = None) -> None:
        self.walker = Walker(events, slow)
        self.trees: dict[Fact, set[Tuple]] = {}

    def change(self, op: str, relation: str, row: Tuple) -> None:
        table = self.walker.slow[relation]
        table.add(row) if op == "+" else table.remove(row)

    def event(self, row: Tuple) -> Counter[Fact]:
        found = self.walker.outputs(Fact(self.walker.events.event, row))
        for tree in found:
            self.trees.setdefault(tree.fact, set()).add(shape(tree))
        return Counter(tree.fact for tree in found)


def shape(tree: Proof) -> Tuple:
    """The whole tree as nested tuples."""
    made: Tuple = (tree.fact.relation, tree.fact.tuple)
    if tree.firing is None:
        return made
    return (*made, tree.firing.rule, *(shape(each) for each in tree.premises))


def assert_same(store: EventStore, truth: Truth) -> None:
    questions = Questions(store)
    for output, expected in truth.trees.items():
        found = questions.of_output(output)
        assert found.is_complete
        assert {shape(each.tree) for each in found.trees} == expected
        assert len(found.trees) == len(expected)
