"""The exchange on Spark: joining is one batch; for updates a state is kept by Spark's workers, or here if it cannot be split.

Peers' relations are what is kept. Internal relations (what is trusted, how mappings fire) are evaluated when asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from pyspark.sql import SparkSession

from whence.backends.spark.boundary import frame_to_rows, rows_to_frame
from whence.backends.spark.evaluate import evaluate
from whence.backends.spark.session import spark_session
from whence.backends.spark.shapes import Shapes
from whence.io.changes import Changes, Epoch, Update
from whence.lang.program import Program
from whence.lang.types import Tuple
from whence.pipeline.keeper import Keeper
from whence.pipeline.options import RunOptions
from whence.pipeline.parts.keeping import Keeping
from whence.pipeline.parts.open import choose, open_state
from whence.pipeline.sinks import CallbackSink


class OnSpark:
    """Looks like a session as far as exchange uses one."""

    def __init__(self, program: Program, facts: Mapping[str, Iterable[Tuple]]) -> None:
        self._program = program
        self._spark: SparkSession = spark_session()
        self._base = {name: set(facts.get(name, ())) for name in program.base_relations}
        self._outputs = frozenset(each.relation for each in program.transfers_of("output"))
        self._views: dict[str, set[Tuple]] = {}
        self._keeper: Keeper | None = None
        self._folder: TemporaryDirectory[str] | None = None
        self._received = Changes()

    def apply(self, updates: Iterable[Update]) -> Changes:
        listed = list(updates)
        if self._keeper is None:
            self._keeper = self._start()
        self._received = Changes()
        self._keeper.apply([Epoch(listed)])
        for op, name, row, _ in listed:
            (self._base[name].add if op == "+" else self._base[name].discard)(row)
        self._views = {}
        return self._received

    def _start(self) -> Keeper:
        """In parts, as many as there are cores, if the rules let it be split."""
        self._folder = TemporaryDirectory(prefix="whence-exchange-")
        state = open_state(Path(self._folder.name) / "state", self._program)
        limited = choose(state, self._base, partitions=None, limit=0, cores=self._cores)
        keeping = Keeping(self._program, RunOptions(sinks=[CallbackSink(self._receive)], partitions=limited.parts))
        return keeping.start(limited, state, self._base, lambda: self._spark)

    def _cores(self) -> int:
        return self._spark.sparkContext.defaultParallelism

    def _receive(self, _: int, changes: Changes) -> None:
        self._received = changes

    def trial(self, updates: Iterable[Update]) -> Changes:
        listed = list(updates)
        before = {(each.relation, each.tuple): each.tuple in self._base[each.relation] for each in listed}
        changes = self.apply(listed)
        self.apply([Update("+" if was else "-", *fact) for fact, was in before.items()])
        return changes

    def relation(self, name: str) -> set[Tuple]:
        if name in self._base:
            return self._base[name]
        if name not in self._views:
            if self._keeper is not None and name in self._outputs:
                self._views[name] = self._keeper.view(name)
            else:
                self._evaluate([*self._outputs] if name in self._outputs else [name])
        return self._views[name]

    def _evaluate(self, wanted: Iterable[str]) -> None:
        shapes, relations = Shapes(self._program.types), self._program.relations
        frames = {
            name: rows_to_frame(self._spark, list(rows), relations[name], shapes)
            for name, rows in self._base.items()
            if rows
        }
        views = evaluate(self._program, frames, spark=self._spark, wanted=wanted)
        self._views |= {name: set(frame_to_rows(frame, relations[name], shapes)) for name, frame in views.items()}
        views.unpersist()

    def base(self) -> dict[str, set[Tuple]]:
        return self._base

    def close(self) -> None:
        if self._keeper is not None:
            self._keeper.close()
        if self._folder is not None:
            self._folder.cleanup()
