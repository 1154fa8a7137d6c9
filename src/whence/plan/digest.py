"""What a plan derives, in short: equal for plans under which the same rows have the same derivations.

In which order a rule joins does not matter for that, nor where it stands in the text.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from hashlib import blake2b

from whence.lang.tree import Span
from whence.plan.compile import Plan


def digest_of(plan: Plan) -> str:
    return blake2b("\n".join(_lines(plan)).encode(errors="surrogatepass"), digest_size=16).hexdigest()


def _lines(plan: Plan) -> Iterator[str]:
    program = plan.program
    for name, relation in program.relations.items():
        yield _text((name, relation.fields, relation.choices))
    for record, parts in program.types.records.items():
        yield _text((record, parts))
    for data, branches in program.types.adts.items():
        yield _text((data, *branches.items()))
    for stratum, each in zip(program.strata, plan.strata, strict=True):
        yield _text((stratum.relations, each.recursive, each.native, each.aggregates))
        for name in each.relations:
            yield from sorted(_text((rule.head, rule.body)) for rule in program.rules_for(name))


def _text(node: object) -> str:
    """All that the node says, without places in the text."""
    if isinstance(node, Span):
        return ""
    if isinstance(node, str):
        return repr(node)
    if isinstance(node, tuple | list):
        return f"({' '.join(map(_text, node))})"
    if isinstance(node, frozenset):
        return f"{{{' '.join(sorted(map(_text, node)))}}}"
    if names := _fields(type(node)):
        return f"{type(node).__name__}[{' '.join([_text(getattr(node, name)) for name in names])}]"
    return repr(node)


_FIELDS: dict[type, tuple[str, ...]] = {}  # there are few types, and many nodes


def _fields(kind: type) -> tuple[str, ...]:
    if kind not in _FIELDS:
        _FIELDS[kind] = tuple(each.name for each in fields(kind)) if is_dataclass(kind) else ()
    return _FIELDS[kind]
