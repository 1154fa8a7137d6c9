"""What the epoch algorithms ask of a backend.

A backend holds rows in tables and runs delta plans on them. It decides how rows and batches are represented; the algorithms
pass them on and look only at whether they are empty.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Sized
from typing import TYPE_CHECKING, Generic, NamedTuple, Protocol, Self, TypeVar

from whence.lang.program import Program, Rule
from whence.lang.types import Tuple
from whence.plan.extract_aggregates import AggregateSpec
from whence.plan.steps import Check, DeltaPlan, Join

if TYPE_CHECKING:
    from whence.reasoning.costs import Observed

# What a row's flags mean; joins name the ones they must not see.
ADDED = 1  # came in this epoch
GONE = 2  # left in this epoch, still there for those who ask for the state before
BATCH = 4  # is part of the batch being propagated
SUSPENDED = 8  # has lost its support, or has not been given any yet
QUEUED = 16  # waits in the list of rows to be looked at next
FREE = 32  # no row
HIDDEN = 64  # not present: suspended, and its consequences have been taken away
EXTERNAL = 128  # put in from outside

Forbid = Callable[[Join | Check], int]
Ids = TypeVar("Ids", bound=Sized)
Keys = TypeVar("Keys", bound=Sized)
Ranks = TypeVar("Ranks")
Keys_contra = TypeVar("Keys_contra", contravariant=True)
Ranks_contra = TypeVar("Ranks_contra", contravariant=True)


class TableOperations(Protocol[Ids, Keys_contra, Ranks_contra]):
    """A relation's rows. `Ids` are row numbers; keys are rows by value, with the ranks of what derives them."""

    def __len__(self) -> int: ...
    def add_supports(self, keys: Keys_contra, ranks: Ranks_contra) -> Ids: ...
    def add_new(self, keys: Keys_contra, ranks: Ranks_contra) -> Ids: ...
    def drop_supports(self, keys: Keys_contra, ranks: Ranks_contra) -> Ids: ...
    def activate(self, ids: Ids, rank: int, *, is_batch: bool = True) -> Ids: ...
    def keep_added(self, ids: Ids) -> None: ...
    def change_flags(self, ids: Ids, *, on: int = 0, off: int = 0) -> None: ...
    def with_flags(self, ids: Ids, *, on: int = 0, off: int = 0) -> Ids: ...
    def derivable(self, ids: Ids) -> Ids: ...
    def queue_derivable(self, ids: Ids) -> Ids: ...
    def find(self, keys: Keys_contra, forbid: int = 0) -> Ids: ...
    def ids(self, forbid: int = 0) -> Ids: ...
    def erase(self, ids: Ids) -> None: ...

    def net(self, come: Ids, lost: Ids) -> tuple[Ids, Ids, Ids]:
        """Of rows that became present and that were lost in an epoch, maybe several times: those that came and are there, those
        that were there before, each once, and those that were there in between only.
        """
        ...

    def reconsider(self) -> Ids | None:
        """Has rows kept another way if that is better by now. If so, their new numbers, for `renumbered`."""
        ...


class GroupOperations(Protocol[Ids, Keys]):
    """The groups of one aggregate. `Keys` name groups, or are rows of the relation that holds them, the output."""

    def keys_of(self, relation: str, ids: Ids) -> Keys:
        """The groups that rows of the aggregate's relations belong to."""
        ...

    def keys_of_added(self, relation: str, ids: Ids) -> Keys:
        """The same for rows that an input of the stratum has gained; it stays as it is for the rest of the epoch."""
        ...

    @property
    def is_of_numbers(self) -> bool:
        """Whether it is the least or greatest of numbers, so that one look at a row tells what it does to its group."""
        ...

    def improved(self, ids: Ids, absent: int) -> Keys:
        """Of the groups that rows have come to, those whose value they change."""
        ...

    def weakened(self, ids: Ids, absent: int) -> Keys:
        """Of the groups that rows have gone from, those that had their value."""
        ...

    def best_first(self, ids: Ids) -> tuple[Ids, Ids | None]:
        """If rows are many, those with the best values and the others."""
        ...

    def the_only_key(self) -> Keys: ...
    def merge(self, batches: Sequence[Keys]) -> Keys: ...

    def without_rows(self, keys: Keys, absent: int) -> Keys:
        """Those groups that have no row in the output."""
        ...

    def regroup(self, keys: Keys, forbid: Mapping[str, int], absent: int) -> tuple[Keys, Keys]:
        """Rows of the output that are not what the groups aggregate to, and rows that are and are not there."""
        ...

    def unsupported(self, keys: Keys, forbid: Mapping[str, int], absent: int, recursive: tuple[str, ...]) -> Keys:
        """Rows of the output that their groups do not aggregate to if recursive relations show lower ranks only."""
        ...


class Trace(NamedTuple, Generic[Ids, Keys]):
    """Derivations: their heads and, by position in the body, the rows that each used and the keys that it found absent."""

    heads: Keys
    rows: dict[int, Ids]
    absent: dict[int, Keys]


class Spread(NamedTuple, Generic[Ids]):
    """Rows that were lost, by relation: those whose consequences are taken away, and those that still have them."""

    done: dict[str, Ids]
    left: dict[str, Ids]


class Gain(NamedTuple, Generic[Ids]):
    """Rows that became present in a number of rounds and were not there before the epoch, and those that are to become present
    next; both by relation.

    `last` is the plan that derived a row last that was not there.
    """

    done: dict[str, Ids]
    left: dict[str, Ids]
    rounds: int
    last: DeltaPlan | None


class Unsettled(NamedTuple, Generic[Ids]):
    """What rounds of a stratum with groups have still to do, by relation: rows that are queued, rows that were lost and may come
    back, rows that were lost and whose consequences are still there, and rows that groups may get their values from.
    """

    queued: Mapping[str, Sequence[Ids]]
    lost: Mapping[str, Sequence[Ids]]
    losing: Mapping[str, Sequence[Ids]]
    offered: Mapping[str, Sequence[Ids]]


class Settled(NamedTuple, Generic[Ids]):
    """What such rounds did: rows that became present, and rows that were lost or did not become present after all, both by
    relation, and some of them several times; what is left to do; how many were suspended, in how many rounds, up to which rank.

    `last` is the plan that derived a row last that was not there, and rows of the kind, the last of which is one of them.
    """

    made: dict[str, Ids]
    lost: dict[str, Ids]
    left: Unsettled[Ids]
    suspended: int
    rounds: int
    rank: int
    last: tuple[DeltaPlan, Ids] | None


class Enough(NamedTuple):
    """After how many rounds, and after how many new rows, others have a say."""

    rounds: int
    rows: int

    @classmethod
    def everything(cls) -> Self:
        """There are no limits."""
        return cls(1 << 40, 1 << 40)


# Reconsiders the tables of a stratum: new numbers, by relation, of rows that are kept another way now.
Reconsider = Callable[[], Mapping[str, Ids]]


class BestRounds(Protocol[Ids]):
    """The rounds of a stratum with groups, all of which are of numbers, by the plans they were asked for with. A group has the
    value of a row that is present, and no better one is.
    """

    def lose(self, lost: Mapping[str, Sequence[Ids]], seen: Sequence[Forbid]) -> dict[str, Ids]:
        """Takes away what followed from lost rows, rows of groups included: all the rows that were lost."""
        ...

    def settle(
        self,
        unsettled: Unsettled[Ids],
        seen: tuple[Sequence[Forbid], Sequence[Forbid]],
        rank: int,
        enough: Enough,
    ) -> Settled[Ids]:
        """Goes through rounds, with the ranks after `rank`. Plans see rows in one way taking away and in another adding."""
        ...


class Watch(Protocol):
    """Who is told now and then that work goes on, and may stop it by raising."""

    at: Rule | None  # being applied

    def look(self) -> None: ...

    def keep_sample(self) -> None:
        """Has what it knows of rows no longer depend on their numbers."""
        ...

    def seconds_left(self) -> float | None:
        """Until it will be stopped, if that is known."""
        ...


class Backend(Protocol[Ids, Keys, Ranks]):
    enumerated: int  # derivations, so far
    watch: Watch  # to be told

    def table(self, relation: str) -> TableOperations[Ids, Keys, Ranks]: ...
    def run(self, plan: DeltaPlan, ids: Ids | None, forbid: Forbid) -> Iterator[tuple[Keys, Ranks]]: ...
    def run_adding(self, plan: DeltaPlan, ids: Ids, forbid: Forbid) -> Iterator[tuple[Keys, Ranks]]:
        """The same for heads that are only put into their table, by `add_supports`: they may be written in a way of its own."""
        ...

    def spread_loss(
        self, plans: Sequence[tuple[DeltaPlan, Forbid]], lost: Mapping[str, Sequence[Ids]], *, is_counted: bool
    ) -> Spread[Ids] | None:
        """Takes away what followed from lost rows, by `drop_supports`, and what followed from that, in small batches.

        If it is not counted, rows lose all their derivations at once. Rows that would be a large batch are left. None if the
        plans are of a kind that the backend takes only one by one.
        """
        ...

    def spread_gain(
        self,
        plans: Sequence[tuple[DeltaPlan, Forbid]],
        queued: Mapping[str, Sequence[Ids]],
        rank: int,
        enough: Enough,
        reconsider: Reconsider[Ids],
    ) -> Gain[Ids] | None:
        """Makes queued rows present, with the rank after `rank`, by `add_supports` queues what follows from them, and goes on
        with that in the next round. None, and nothing has happened, if the round is large or the plans are of a kind that the
        backend takes only one by one.

        Rows that have nothing to do with each other may be followed one after the other, all their rounds. In between tables may
        be reconsidered: what is said then is said of the rows that are on their way here, too.
        """
        ...

    def best_rounds(
        self, plans: Sequence[DeltaPlan], relations: Sequence[str], specs: Sequence[AggregateSpec]
    ) -> BestRounds[Ids] | None:
        """None if the plans or the aggregates are of a kind that the backend takes only one by one."""
        ...

    def encode(self, relation: str, rows: Sequence[Tuple]) -> Keys: ...
    def decode(self, relation: str, ids: Ids) -> list[Tuple]: ...
    def last(self, relation: str, ids: Ids) -> Tuple: ...
    def decode_keys(self, relation: str, keys: Keys) -> list[Tuple]: ...
    def existing(self, ids: Ids) -> Ids: ...
    def have_flag(self, relation: str, keys: Keys, flag: int) -> list[bool]: ...
    def concatenate(self, batches: Sequence[Ids]) -> Ids: ...
    def unranked(self, keys: Keys) -> Ranks: ...
    def tuples(self) -> int: ...

    def sizes(self) -> dict[str, int]:
        """Tuples by relation, those of helper relations with what they help."""
        ...

    def round_trip(self, relations: Sequence[str], *, joined: bool) -> list[tuple[str, Tuple]]:
        """Rows of tagged relations, each derived from the one before, from one to an equal one, or to one that is equal in the
        columns that are joined with others. None if the longest ways have no such rows."""
        ...

    # Plans that change: relations that come, a place to evaluate them in, and what that has changed.
    def extend(self, program: Program) -> None: ...
    def scratch(self) -> Self: ...
    def rows(self, relation: str, *, having: int = 0, without: int = 0) -> Keys: ...
    def take_over(self, relation: str, other: Self) -> tuple[Ids, Ids]: ...

    def groups(self, spec: AggregateSpec) -> GroupOperations[Ids, Keys]: ...
    def distinct(self, ids: Ids) -> Ids: ...

    def renumbered(self, ids: Ids, moved: Ids) -> Ids:
        """What rows are called now, after `reconsider` said so."""
        ...

    def without(self, ids: Ids, others: Ids) -> Ids: ...

    # What adapting a view needs: what is known of a relation, rows that count as often as others are derived, what is left of
    # derivations that go and come.
    def observe(self, relation: str) -> Observed: ...
    def repeated(self, keys: Keys, used: Sequence[tuple[str, Ids]], times: int) -> Keys: ...
    def net(self, relation: str, gone: Sequence[Keys], come: Sequence[Keys]) -> tuple[Keys, Keys]: ...

    # What annotations need: which rows derivations used, row numbers one by one, and rows made if they are not there.
    def trace(self, plan: DeltaPlan, ids: Ids | None, forbid: Forbid) -> Iterator[Trace[Ids, Keys]]: ...
    def numbers(self, ids: Ids) -> list[int]: ...
    def numbered(self, numbers: Sequence[int]) -> Ids: ...
    def claim(self, relation: str, keys: Keys) -> Ids: ...
