"""What a run tells of itself, as rows: the engine is a source like others.

The relation's columns say what is wanted. Each reader gives a table whose first row names the columns that there are.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from typing import Any

Rows = list[list[str]]

_HELPER = re.compile(r"[#!]")  # behind the name of a view: what the plan made of a part of its rules


def from_metrics(text: str, columns: Collection[str]) -> Rows:
    """The figures that a run leaves in its state (`metrics.json`).

    With a column `view`, a row for each view, with its `rows`. Else one row, with columns `epoch` (the last), `bytes`, and of all
    since the process began `epochs`, `updates`, `inserted`, `deleted`, `rounds` and `microseconds`.
    """
    found = _object(text, {"last", "totals"}, "these are not the figures of a run")
    last, totals = found["last"], found["totals"]
    if "view" in columns:
        return [["view", "rows"], *([name, str(size)] for name, size in last["tuples"].items())]
    work = {
        **{name: totals[name] for name in ("epochs", "updates", "inserted", "deleted", "rounds")},
        "epoch": last["epoch"],
        "bytes": last["state_bytes"],
        "microseconds": _micro(totals["seconds"]),
    }
    return [list(work), [str(value) for value in work.values()]]


def from_profile(text: str, columns: Collection[str]) -> Rows:
    """What rules cost, of a run with `--profile` (`profile.json`).

    With a column `operator`, a row for each step of each plan: the `rule`, which literal it begins `on`, the `step` (0 are the
    rows that changed), its `operator` as text, `rows_in`, `rows_out`, `microseconds`. Else a row for each `rule`: the `view` that
    it derives or helps to, its `text`, and `derivations`, `new`, `lost`, `microseconds`.
    """
    found = _object(text, {"rules", "strata"}, "this is not the profile of a run")
    if "operator" not in columns:
        names = ["rule", "view", "text", "derivations", "new", "lost", "microseconds"]
        return [
            names,
            *(
                [
                    rule["name"],
                    _HELPER.split(rule["head"])[0],
                    rule["text"],
                    *(str(rule[name]) for name in names[3:6]),
                    _micro(rule["seconds"]),
                ]
                for rule in found["rules"]
            ),
        ]
    rows = [["rule", "on", "step", "operator", "rows_in", "rows_out", "microseconds"]]
    for rule in found["rules"]:
        for driver in rule["drivers"]:
            beginning = [rule["name"], driver["literal"]]
            changed = str(driver["rows"])
            rows.append([*beginning, "0", f"changes of {driver['literal']}", changed, changed, "0"])
            before = driver["rows"]
            for step, literal in enumerate(driver["literals"], 1):
                given = literal["given"] if literal["given"] is not None else before
                after = literal["rows"] if literal["rows"] is not None else driver["derivations"]
                operator = f"{literal['kind']} {literal['text']}"
                taken = _micro(literal["seconds"] or 0.0)
                rows.append([*beginning, str(step), operator, str(given), str(after), taken])
                before = after
    return rows


def _object(text: str, wanted: set[str], complaint: str) -> dict[str, Any]:
    found = json.loads(text)
    if not isinstance(found, dict) or not wanted <= found.keys():
        raise ValueError(complaint)
    return found


def _micro(seconds: float) -> str:
    return str(round(seconds * 1e6))
