"""Conflicts: rows of one relation with the same key, of which only one can be true.

What the peer put in itself wins. Otherwise the row wins that costs the least in trust; if several do, nobody knows, and none is
shown until somebody decides. Rows that lose are recorded as lost, not as rejected: when the winner goes, they are considered
again. A decision stands as long as its winner is there, whatever better row arrives, until it is undone.

Cheap conflicts are decided first: what a row is derived from costs no more than it does, so decisions on cheaper rows are not
upset by later ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from whence.exchange.compile import CHOSEN, LOCAL, LOST, REJECTED, TRUSTED
from whence.exchange.explain import costs
from whence.exchange.instance import Edit, Instance
from whence.exchange.model import Relation
from whence.exchange.rows import key_of, show_row, sort_rows
from whence.lang.types import Tuple
from whence.provenance.graph import Fact


@dataclass(frozen=True)
class Conflict:
    """Rows with one key that nobody has decided between, with their costs."""

    relation: str
    key: Tuple
    rows: tuple[tuple[Tuple, float], ...]


def deferred(instance: Instance, peer: str) -> list[Conflict]:
    """The conflicts of a peer that wait for a decision."""
    found: list[Conflict] = []
    for relation in instance.confederation.relations_of(peer):
        present = {key_of(relation, row) for row in instance.relation(relation.full_name)} if relation.key else set()
        for key, rows in _groups(relation, _candidates(instance, relation)).items():
            if key not in present:
                priced = _priced(instance, peer, relation, rows)
                found.append(Conflict(relation.full_name, key, tuple((row, priced[row]) for row in sort_rows(rows))))
    return found


def reconcile(instance: Instance, peer: str) -> list[Edit]:
    """Decides what can be decided, and applies it to the instance. Gives what changed in the decisions, to be published."""
    before = _decisions(instance, peer)
    tried: set[tuple[str, Tuple]] = set()
    _settle(instance, peer)
    while reconsidered := list(_reconsider(instance, peer, tried)):
        instance.apply(reconsidered)
        _settle(instance, peer)
    after = _decisions(instance, peer)
    gone = [Edit("-", *each) for each in before if each not in after]
    return gone + [Edit("+", *each) for each in after if each not in before]


def _decisions(instance: Instance, peer: str) -> dict[tuple[str, str, Tuple], None]:
    return {
        (part, relation.full_name, row): None
        for relation in instance.confederation.relations_of(peer)
        for part in (LOST, CHOSEN)
        for row in sort_rows(instance.part(relation.full_name, part))
    }


def _settle(instance: Instance, peer: str) -> None:
    """Decides the conflicts that there are, those with the cheapest rows first."""
    while conflicts := sorted(_conflicts(instance, peer), key=lambda each: each[0]):
        cheapest = conflicts[0][0][0]
        instance.apply([edit for (cost, _), edits in conflicts if cost == cheapest for edit in edits])


def _reconsider(instance: Instance, peer: str, tried: set[tuple[str, Tuple]]) -> Iterator[Edit]:
    """Rows that lost to a row that is gone get another chance; what is not brought any more is forgotten.

    One chance each, for a row may bring about the very conflict in which it is lost again.
    """
    for relation in instance.confederation.relations_of(peer):
        name = relation.full_name
        shown = instance.relation(name)
        yield from (Edit("-", CHOSEN, name, row) for row in sort_rows(instance.part(name, CHOSEN) - shown))
        lost, candidates = instance.part(name, LOST), _candidates(instance, relation)
        yield from (Edit("-", LOST, name, row) for row in sort_rows(lost - candidates))
        present = {key_of(relation, row) for row in shown}
        for key, rows in _groups(relation, candidates).items():
            best = [] if key in present else _best(_priced(instance, peer, relation, rows))
            if len(best) == 1 and (name, best[0]) not in tried:
                tried.add((name, best[0]))
                yield Edit("-", LOST, name, best[0])
                if len(rows) > 1:
                    yield Edit("+", CHOSEN, name, best[0])


def _conflicts(instance: Instance, peer: str) -> Iterator[tuple[tuple[float, str], list[Edit]]]:
    """Each conflict among rows that are shown: the cost of its best row, and what is to be recorded."""
    for relation in instance.confederation.relations_of(peer):
        name = relation.full_name
        local, chosen = instance.part(name, LOCAL), instance.part(name, CHOSEN)
        for key, rows in _groups(relation, instance.relation(name)).items() if relation.key else ():
            if len(rows) == 1:
                continue
            least = 0.0
            best = [row for row in rows if row in local]
            if not best:
                priced = _priced(instance, peer, relation, rows)
                least = min(priced.values())
                best = [row for row in rows if row in chosen] or _best(priced)
            elif len(best) == len(rows):
                continue  # two rows of its own with one key: publishing refused the second, or the key came later
            is_decided = len(best) == 1
            losers = [row for row in rows if row not in best or (not is_decided and row not in local)]
            edits = [Edit("+", LOST, name, row) for row in sort_rows(losers)]
            if is_decided and best[0] not in chosen and best[0] not in local:
                edits.append(Edit("+", CHOSEN, name, best[0]))
            yield (least, repr((name, key))), edits


def _candidates(instance: Instance, relation: Relation) -> set[Tuple]:
    """Lost rows that a trusted derivation still brings."""
    name = relation.full_name
    lost = instance.part(name, LOST)
    return lost & instance.part(name, TRUSTED) - instance.part(name, REJECTED) if lost else lost


def _groups(relation: Relation, rows: Iterable[Tuple]) -> dict[Tuple, list[Tuple]]:
    groups: dict[Tuple, list[Tuple]] = {}
    for row in rows:
        groups.setdefault(key_of(relation, row), []).append(row)
    return groups


def _best(priced: Mapping[Tuple, float]) -> list[Tuple]:
    least = min(priced.values())
    return [row for row, cost in priced.items() if cost == least]


def _priced(instance: Instance, peer: str, relation: Relation, rows: Iterable[Tuple]) -> dict[Tuple, float]:
    facts = [Fact(relation.full_name, row) for row in rows]
    return {fact.tuple: cost for fact, cost in costs(instance, peer, facts).items()}


def resolution(instance: Instance, relation: Relation, row: Tuple) -> list[Edit]:
    """The decision for a row against all others with its key. Raises ValueError if there is no such row to choose."""
    name = relation.full_name
    rivals = {each for each in _rivals(instance, relation) if key_of(relation, each) == key_of(relation, row)}
    if row not in rivals or not relation.key:
        raise ValueError(f"{show_row(name, row)} is not one of the rows to choose from")
    edits = [Edit("+", LOST, name, each) for each in sort_rows(rivals - {row} - instance.part(name, LOCAL))]
    chosen = [each for each in instance.part(name, CHOSEN) if each in rivals and each != row]
    edits += [Edit("-", CHOSEN, name, each) for each in chosen]
    return [*edits, Edit("-", LOST, name, row), Edit("+", CHOSEN, name, row)]


def undoing(instance: Instance, relation: Relation, key: Tuple) -> list[Edit]:
    """Forgets what was decided about a key; the next exchange decides again."""
    name = relation.full_name
    return [
        Edit("-", part, name, row)
        for part in (LOST, CHOSEN)
        for row in sort_rows(instance.part(name, part))
        if key_of(relation, row) == key
    ]


def _rivals(instance: Instance, relation: Relation) -> set[Tuple]:
    return instance.relation(relation.full_name) | _candidates(instance, relation)
