"""What can be asked for. No Spark is needed to name it."""

from __future__ import annotations

from enum import StrEnum


class Mode(StrEnum):
    """How recursion is evaluated; `auto` leaves it to the planner."""

    AUTO = "auto"
    IN_TASK = "in-task"
    DECOMPOSED = "decomposed"
    SHUFFLED = "shuffled"


class Form(StrEnum):
    """How results are written: as fact files, or as folders of parts."""

    TEXT = "text"
    PARQUET = "parquet"
    JSON = "json"
    CSV = "csv"
