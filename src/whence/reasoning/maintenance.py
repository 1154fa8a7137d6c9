"""Rules that maintain a view, found rather than written: the view after a change, said in terms of what it was before.

Each relation that changes is, after the change, a view of two: what it was, and what came or went (`r + r.change`). The view
over these, written out, is reformulated with the view as it was and with the relations as they are after the change.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from whence.lang.program import Var
from whence.reasoning.costs import Cardinalities
from whence.reasoning.forms import added, sum_of
from whence.reasoning.queries import Conjunctive
from whence.reasoning.rewriting import Reformulation, View, reformulate, unfolded

CHANGE, AFTER = ".change", ".after"


def after_views(parts: Sequence[Conjunctive], changing: Iterable[str]) -> list[View]:
    """For each relation that changes, the view that it is after the change."""
    kinds = {name: tuple(each.kind for each in args) for part in parts for name, args in part.atoms}
    views = []
    for name in changing:
        head = tuple(Var(f"c{at}", kind) for at, kind in enumerate(kinds[name]))
        sides = tuple(Conjunctive("", head, ((each, head),)) for each in (name, name + CHANGE))
        views.append(View(name + AFTER, sides))
    return views


def maintenance(
    view: View, changing: Iterable[str], known: Cardinalities, *, indexed: bool = True, seconds: float = 1.0
) -> Reformulation:
    """What is to be added to the view if these relations change: signed rules over them, their changes, and what they become."""
    names = tuple(changing)
    after = after_views(view.parts, names)
    later = [
        replace(part, atoms=tuple((name + AFTER if name in names else name, args) for name, args in part.atoms))
        for part in view.parts
    ]
    change = added(unfolded(sum_of(later), {each.name: each for each in after}), sum_of(view.parts, -1))
    return reformulate(change, [*after, view], known, indexed=indexed, seconds=seconds)
