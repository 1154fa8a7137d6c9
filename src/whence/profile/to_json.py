"""A report for programs: one object, whose names stay."""

from __future__ import annotations

from dataclasses import asdict

from whence.profile.hints import hints_of
from whence.profile.report import Report

JsonObject = dict[str, object]


def to_json(report: Report) -> JsonObject:
    return {
        "hints": hints_of(report),
        "seconds": report.seconds,
        "epochs": report.epochs,
        "rounds": report.rounds,
        "derivations": report.derivations,
        "rules": [
            {
                **asdict(rule),
                "seconds": rule.seconds,
                "derivations": rule.derivations,
                "new": rule.new,
                "lost": rule.lost,
            }
            for rule in report.rules
        ],
        "strata": [asdict(each) for each in report.strata],
        "relations": [
            {
                "name": each.name,
                "rows": each.rows,
                "bytes": each.table_bytes,
                "indexes": [{"columns": names, "bytes": taken} for names, taken in each.indexes],
            }
            for each in report.relations
        ],
    }
