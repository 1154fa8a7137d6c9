"""The engines that Whence is compared with, each asked in its own language for the number of rows."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

Facts = Mapping[str, Sequence[tuple[int, ...]]]


class DuckDB:
    """Tables are loaded beforehand; only the query is measured."""

    name = "DuckDB"

    def __init__(self, facts: Facts, threads: int = 2) -> None:
        import duckdb  # noqa: PLC0415
        import pandas as pd  # noqa: PLC0415

        self.connection = duckdb.connect()
        self.connection.execute(f"SET threads = {threads}")
        for name, rows in facts.items():
            frame = pd.DataFrame(rows, columns=[f"c{at}" for at in range(len(rows[0]))])
            self.connection.register("frame", frame)
            self.connection.execute(f"CREATE TABLE {name} AS SELECT * FROM frame")
            self.connection.unregister("frame")

    def count(self, query: str) -> int:
        found = self.connection.execute(query).fetchone()
        assert found is not None
        return int(found[0])


class Nemo:
    """Rules and facts are given as text; measured is reasoning alone."""

    name = "Nemo"

    def __init__(self, rules: str, facts: Facts) -> None:
        lines = [f"{name}({', '.join(map(str, row))}) ." for name, rows in facts.items() for row in rows]
        self.text = "\n".join([*lines, rules])

    def seconds(self, relation: str) -> tuple[float, int]:
        engine = self._engine()
        start = time.perf_counter()
        engine.reason()
        seconds = time.perf_counter() - start
        return seconds, sum(1 for _ in engine.result(relation))

    def reasoned(self) -> Any:
        """Nemo's engine, ready to be asked for traces."""
        engine = self._engine()
        engine.reason()
        return engine

    def _engine(self) -> Any:
        import nmo_python as nemo  # noqa: PLC0415

        return nemo.NemoEngine(nemo.load_string(self.text))


class Clingo:
    """Rules and facts are given as text; measured is grounding, which evaluates a program without choices."""

    name = "clingo"

    def __init__(self, rules: str, facts: Facts) -> None:
        lines = [f"{name}({','.join(map(str, row))})." for name, rows in facts.items() for row in rows]
        self.text = "\n".join([*lines, rules])

    def seconds(self, relation: str) -> tuple[float, int]:
        import clingo  # noqa: PLC0415

        control = clingo.Control()
        control.add("base", [], self.text)
        start = time.perf_counter()
        control.ground([("base", [])])
        seconds = time.perf_counter() - start
        return seconds, sum(1 for atom in control.symbolic_atoms if atom.symbol.name == relation)
