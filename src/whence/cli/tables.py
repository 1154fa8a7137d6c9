"""Facts of SQL tables as commands read them: rows in their order, so that what is wrong with one names its file and place."""

from __future__ import annotations

from whence.constraints import ConstraintError, Constraints, check_references, values_in
from whence.io import FactError
from whence.lang.program import Program
from whence.lang.tables import numbered
from whence.lang.types import Tuple

CONSTRAINT_HINT = "correct the rows, or take the constraint out of the CREATE TABLE"


class ReadTables:
    """What has been read so far. `copies` are the rows of the companions of tables whose rows may be equal."""

    def __init__(self, program: Program) -> None:
        self._constraints = Constraints(program)
        self._read = {each.relation for each in program.transfers_of("input")}
        self._rows: dict[str, list[Tuple]] = {}
        self._origins: dict[str, list[tuple[str, int]]] = {}
        self.copies: dict[str, list[Tuple]] = {}

    def let_in(self, name: str, rows: list[Tuple], file: str) -> list[Tuple]:
        """The rows of a file for a table, each once. Raises FactError for those that break a constraint."""
        every = self._rows.setdefault(name, [])
        origins = self._origins.setdefault(name, [])
        every += rows
        origins += [(file, number) for number in range(1, len(rows) + 1)]
        problems = [f"{self._place(origins, broken.at)}: {broken}" for broken in self._constraints.broken(name, every)]
        if problems:
            raise FactError(problems, hints=[CONSTRAINT_HINT])
        companion = self._constraints.tables[name].copies
        if companion is None:
            return rows
        first, self.copies[companion] = numbered(every, self._constraints.written[name])
        return first

    def check_references(self) -> None:
        """Raises FactError for a row that refers to nothing, once all is read. What comes by column, a session looks at."""
        asked = {each for name, reference in self._constraints.references for each in (name, reference.table)}
        if any(name not in self._read and not self._constraints.written[name] for name in asked):
            return
        try:
            check_references({name: values_in(rows) for name, rows in self._rows.items()}, self._constraints)
        except ConstraintError as error:
            broken = error.broken
            place = self._place(self._origins.get(broken.relation, []), broken.at)
            raise FactError([f"{place}: {broken}"], hints=[CONSTRAINT_HINT]) from None

    @staticmethod
    def _place(origins: list[tuple[str, int]], at: int) -> str:
        if at < 0:
            return "the program"
        file, number = origins[at]
        return f"{file}, row {number}"
