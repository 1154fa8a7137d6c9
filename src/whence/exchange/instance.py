"""Everything that peers have published, translated: the instance of a whole confederation, kept current.

It is a function of the confederation and of what was published, and of nothing else: whoever has read the same entries has the
same rows. A peer's own tables are the part of it that bears the peer's name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import NamedTuple, Protocol, runtime_checkable

from whence.backends.local.image import Image
from whence.engine.adapt import Adaptation
from whence.engine.propagate import PropagateDelete
from whence.exchange.compile import (
    CHOSEN,
    LOCAL,
    LOST,
    MARKS,
    REJECTED,
    TRUSTED,
    WITHDRAWN,
    Compiled,
    compile_confederation,
    table_of,
)
from whence.exchange.mappings import skolem_name
from whence.exchange.model import Confederation, SchemaMapping
from whence.exchange.recompute import Recompute
from whence.exchange.rows import Rows, unwrap
from whence.io.changes import Changes, Update
from whence.lang import tree
from whence.lang.differences import why_rows_would_differ
from whence.lang.load import Functions
from whence.lang.types import Tuple, Value, Variant
from whence.pipeline.extras import extra
from whence.prepared import prepare
from whence.session import Session

STRATEGIES = ("support", "propagate-delete", "dred", "recompute")
ON_SPARK = "spark"
PARTS = (LOCAL, REJECTED, LOST, CHOSEN)


class Edit(NamedTuple):
    """`+` or `-` of a row in one of the tables that a peer decides on: local, rejected, lost or chosen."""

    op: str
    part: str
    relation: str
    row: Tuple


class Delta(NamedTuple):
    """What came and went in the relations that users see."""

    inserted: Mapping[str, set[Tuple]]
    deleted: Mapping[str, set[Tuple]]

    def of(self, peer: str) -> Delta:
        return Delta(*({name: rows for name, rows in side.items() if name.startswith(f"{peer}.")} for side in self))

    def __bool__(self) -> bool:
        return any(rows for side in self for rows in side.values())


class _Maintained(Protocol):
    def apply(self, updates: Iterable[Update]) -> Changes: ...
    def trial(self, updates: Iterable[Update]) -> Changes: ...
    def relation(self, name: str) -> Collection[Tuple]: ...
    def base(self) -> dict[str, set[Tuple]]: ...


@runtime_checkable
class _Closing(Protocol):
    def close(self) -> None: ...


class OtherImage(ValueError):
    """An image that is not of this confederation's tables, or of another version of Whence."""


class Instance:
    """`image` is that of the session of an instance like this one: then nothing is evaluated, and edits are those that wait.
    Raises `OtherImage`.
    """

    _maintained: _Maintained
    _aside: set[
        tuple[str, str, Tuple]
    ]  # with nulls that no mapping invents any more: they may come to mean something again

    def __init__(
        self,
        confederation: Confederation,
        edits: Iterable[Edit] = (),
        *,
        functions: Functions | None = None,
        strategy: str = "support",
        image: Image | None = None,
    ) -> None:
        if strategy not in (*STRATEGIES, ON_SPARK):
            raise ValueError(f"there is no strategy {strategy}; there are {', '.join((*STRATEGIES, ON_SPARK))}")
        self.strategy = strategy
        self._functions = functions
        compiled = compile_confederation(confederation, functions)
        if image is None:
            self._begin(compiled, edits)
        else:
            self._resume(compiled, image, edits)

    def _resume(self, compiled: Compiled, image: Image, waiting: Iterable[Edit]) -> None:
        session = Session.resumed(prepare(compiled.program), image)
        if session is None:
            raise OtherImage
        self.compiled, self.rows, self._maintained = compiled, Rows(compiled), session
        self._aside = {(each.part, each.relation, each.row) for each in waiting}
        self._count_variants()

    def _begin(self, compiled: Compiled, edits: Iterable[Edit]) -> None:
        self.compiled, self.rows = compiled, Rows(compiled)
        self._aside = set()
        facts: dict[str, dict[Tuple, None]] = {}
        for op, name, row, _ in self._updates(edits):
            if op == "+":
                facts.setdefault(name, {})[row] = None
            else:
                facts.setdefault(name, {}).pop(row, None)
        self._maintained = self._make(facts)
        self._count_variants()

    def _count_variants(self) -> None:
        self._variants: dict[str, Counter[Tuple]] = {}
        for name, relation in self.confederation.relations.items() if self.compiled.has_marks else ():
            width = len(relation.columns)
            rows = self._maintained.relation(name)
            self._variants[name] = Counter(self.rows.from_engine(row, width) for row in rows)

    def _make(self, facts: Mapping[str, Iterable[Tuple]]) -> _Maintained:
        program = self.compiled.program
        if self.strategy == "propagate-delete":
            return PropagateDelete(program, facts)
        if self.strategy == ON_SPARK:
            with extra("spark"):
                from whence.exchange.on_spark import OnSpark  # noqa: PLC0415 - it imports Spark

            return OnSpark(program, facts)
        if self.strategy == "recompute":
            return Recompute(program, facts, self.compiled.confederation.relations)
        return Session(program, facts={name: list(rows) for name, rows in facts.items()}, strategy=self.strategy)

    def close(self) -> None:
        """Lets go of what is kept outside of this process: only on Spark there is such."""
        if isinstance(self._maintained, _Closing):
            self._maintained.close()

    @property
    def confederation(self) -> Confederation:
        return self.compiled.confederation

    @property
    def session(self) -> Session:
        """For questions. Baselines that keep no session get one, from the same base rows."""
        if isinstance(self._maintained, Session):
            return self._maintained
        if isinstance(self._maintained, Recompute):
            return self._maintained.session
        return Session(self.compiled.program, facts=self._maintained.base())

    @property
    def adaptations(self) -> tuple[Adaptation, ...]:
        """How the derivations of mappings were adapted that the last `change` changed, where that did not begin anew."""
        return self._maintained.adaptations if isinstance(self._maintained, Session) else ()

    # -- changing it

    def apply(self, edits: Iterable[Edit]) -> Delta:
        """All edits at once. Raises ValueError, and changes nothing, if a row does not fit; unknown nulls wait."""
        updates = self._updates(edits)
        if isinstance(self._maintained, Session):
            return self._delta(self._maintained.apply(updates, checked=True, of=self.confederation.relations))
        return self._delta(self._maintained.apply(updates))

    def trial(self, edits: Iterable[Edit]) -> Delta:
        """What `apply` would change."""
        counts, aside = {name: each.copy() for name, each in self._variants.items()}, self._aside
        delta = self._delta(self._maintained.trial(self._updates(edits)))
        self._variants, self._aside = counts, aside
        return delta

    def _updates(self, edits: Iterable[Edit]) -> list[Update]:
        listed = list(edits)
        given: dict[str, list[Tuple]] = {}
        for each in listed:
            given.setdefault(each.relation, []).append(each.row)
        fitting = {name: iter(self.rows.all_to_engine(name, rows)) for name, rows in given.items()}
        tables = {(name, part): f"{name}.{part}" for name in given for part in PARTS}
        updates: list[Update] = []
        aside = self._aside.copy()
        for op, part, name, row in listed:
            found = next(fitting[name])
            if found is None:
                (aside.add if op == "+" else aside.discard)((part, name, row))
            else:
                updates.append(Update(op, tables[name, part], found))
        self._aside = aside
        return updates

    def _delta(self, changes: Changes) -> Delta:
        """Rows that only changed where they come from have not changed."""
        inserted: dict[str, set[Tuple]] = {}
        deleted: dict[str, set[Tuple]] = {}
        for name in self.confederation.relations:
            came, went = changes.inserted.get(name, ()), changes.deleted.get(name, ())
            if self.compiled.has_marks:
                new, old = self._recount(name, came, went)
            else:
                new, old = self._seen(name, came), self._seen(name, went)
            if new:
                inserted[name] = new
            if old:
                deleted[name] = old
        return Delta(inserted, deleted)

    def _recount(self, name: str, came: Iterable[Tuple], went: Iterable[Tuple]) -> tuple[set[Tuple], set[Tuple]]:
        """A row is there as long as it is with some marks."""
        width = len(self.confederation.relations[name].columns)
        counts = self._variants[name]
        changed: Counter[Tuple] = Counter(self.rows.from_engine(row, width) for row in came)
        changed.subtract(self.rows.from_engine(row, width) for row in went)
        new: set[Tuple] = set()
        old: set[Tuple] = set()
        for row, number in changed.items():
            before = counts[row]
            counts[row] = before + number
            if not counts[row]:
                del counts[row]
            if not before and number > 0:
                new.add(row)
            elif before and not before + number:
                old.add(row)
        return new, old

    def change(self, confederation: Confederation) -> Delta:
        """Another confederation over the same published rows, as far as their relations are still there.

        If the columns of what stays are the same, only the consequences of what changed are touched.
        """
        compiled = compile_confederation(confederation, self._functions)
        before = {name: self.relation(name) for name in self.confederation.relations}
        if isinstance(self._maintained, Session) and not any(
            why_rows_would_differ(self.compiled.program, compiled.program)
        ):
            self._maintained.revise(compiled.program)
            self.compiled, self.rows = compiled, Rows(compiled)
            waiting, self._aside = self._aside, set()
            kept = [Edit("+", *each) for each in waiting if each[1] in confederation.relations]
            self._maintained.apply(self._updates(kept))
            self._count_variants()
        else:
            kept = list(self._kept(confederation))
            self.close()
            self._begin(compiled, kept)
        after = {name: self.relation(name) for name in confederation.relations}
        names = {*before, *after}
        inserted = {name: rows for name in names if (rows := after.get(name, set()) - before.get(name, set()))}
        deleted = {name: rows for name in names if (rows := before.get(name, set()) - after.get(name, set()))}
        return Delta(inserted, deleted)

    def _kept(self, confederation: Confederation) -> Iterator[Edit]:
        for each in self.edits():
            relation = confederation.relations.get(each.relation)
            if relation is not None and relation == self.confederation.relations[each.relation]:
                yield each

    # -- looking at it

    def relation(self, name: str) -> set[Tuple]:
        """The rows that users see."""
        return self._seen(name, self._maintained.relation(name))

    def part(self, name: str, part: str) -> set[Tuple]:
        """`local`, `rejected`, `lost`, `chosen` or `trusted` of a relation."""
        return self._seen(name, self._maintained.relation(f"{name}.{part}"))

    def edits(self) -> Iterator[Edit]:
        """What everything follows from."""
        for name in self.confederation.relations:
            for part in PARTS:
                for row in self.part(name, part):
                    yield Edit("+", part, name, row)
        yield from self.waiting()

    def waiting(self) -> Iterator[Edit]:
        """Edits with nulls that no mapping invents any more."""
        for each in self._aside:
            yield Edit("+", *each)

    @property
    def size(self) -> int:
        """How many edits that are."""
        tables = (
            self._maintained.relation(f"{name}.{part}") for name in self.confederation.relations for part in PARTS
        )
        return sum(map(len, tables)) + len(self._aside)

    def derivations(self, mapping: str) -> set[Tuple]:
        """How a mapping fires: the values of the variables of its body, in the order of `SchemaMapping.variables`."""
        width = len(self.compiled.columns[mapping])
        return {self.rows.from_engine(row, width) for row in self._maintained.relation(table_of(mapping))}

    def inputs(self, name: str) -> set[Tuple]:
        """All that mappings bring to a relation, trusted or not, rejected or not."""
        found: set[Tuple] = set()
        for mapping in self.confederation.mappings.values():
            names = [column for column, _, _ in self.compiled.columns[mapping.name]]
            heads = [head for head in mapping.heads if head.relation == name]
            for row in self.derivations(mapping.name) if heads else ():
                values = dict(zip(names, row, strict=True))
                found.update(instantiate(mapping, head, values) for head in heads)
        return found

    def holds(self, relation: str, row: Tuple) -> bool:
        if self.compiled.has_marks:
            return row in self._variants[relation]
        try:
            return self.rows.to_engine(relation, row) in self._maintained.relation(relation)
        except ValueError:
            return False

    def _seen(self, name: str, rows: Iterable[Tuple]) -> set[Tuple]:
        width = len(self.confederation.relations[name].columns)
        nullable = [at for at in range(width) if (name, at) in self.compiled.nullable]
        if not nullable:
            return {row[:width] for row in rows} if self.compiled.has_marks else set(rows)
        return {tuple(unwrap(value) for value in row[:width]) for row in rows}


def instantiate(mapping: SchemaMapping, atom: tree.Atom, values: Mapping[str, Value]) -> Tuple:
    """An atom of a mapping as a row: variables have these values, invented ones are made of them."""
    row: list[Value] = []
    for arg in atom.args:
        if isinstance(arg, tree.Variable) and arg.name in mapping.exists:
            row.append(Variant(skolem_name(mapping, arg.name), tuple(values[name] for name in mapping.shared)))
        elif isinstance(arg, tree.Variable):
            row.append(values[arg.name])
        else:
            assert isinstance(arg, tree.Number | tree.String)
            row.append(arg.value)
    return tuple(row)


__all__ = ["MARKS", "PARTS", "STRATEGIES", "TRUSTED", "WITHDRAWN", "Delta", "Edit", "Instance", "instantiate"]
