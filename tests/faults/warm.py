"""Imported before processes are forked, so that each of them finds the compiled loops loaded."""

import pyarrow as pa
from tests.faults.workload import PROGRAM

from whence import Session, Update, load

_session = Session(load(PROGRAM))
_session.apply([Update("+", "link", ("a", "b", 1)), Update("+", "link", ("b", "a", 2)), Update("+", "node", ("a",))])
_session.apply([Update("-", "link", ("b", "a", 2))])
pa.array([1])  # imports pandas
