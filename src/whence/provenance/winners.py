"""What keeps a derived fact out of its relation."""

from __future__ import annotations

from collections.abc import Iterator

from whence.lang.program import Rule
from whence.provenance.derive import Deriver
from whence.provenance.graph import Fact


def winners(deriver: Deriver, fact: Fact) -> Iterator[Fact]:
    """The facts that a choice preferred, or that dominate: a derived fact that is not there has lost to them."""
    if next(iter(deriver.derivations(fact)), None) is None:
        return
    relation = deriver.program.relations[fact.relation]
    for keys in relation.choices:
        rows = deriver.state.tables[fact.relation].lookup(keys, tuple(fact.tuple[key] for key in keys))
        yield from (Fact(fact.relation, row) for row in rows)
    for each in deriver.program.subsumptions:
        if each.dominated.relation == fact.relation:
            rest = tuple(literal for literal in each.body if literal != each.dominated)
            rule = Rule(each.name, each.dominated, rest, each.span)
            for firing in deriver.firings(rule, fact):
                yield from (used for used in firing.body if used.relation == fact.relation)
