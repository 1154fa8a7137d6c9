"""Programs that are nearly right: the conformance cases with tokens removed, swapped, repeated, replaced and put in."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from hypothesis import strategies as st

from whence.lang.program import Program
from whence.lang.scalars import of_whole
from whence.lang.types import (
    BOOL,
    FLOAT,
    NUMBER,
    RESERVED,
    SYMBOL,
    UNSIGNED,
    AdtKind,
    Kind,
    ListKind,
    Nullable,
    RecordKind,
    Tuple,
    Types,
    Value,
    Variant,
    is_whole,
)

CASES = Path(__file__).parents[1] / "conformance"
_TOKEN = re.compile(
    r'"(?:\\.|[^"\\\n])*"|[\w?]+|:-|:=|<:|<=|>=|!=|==|\*\*|\.[a-z_]+|\s+|//[^\n]*|/\*.*?\*/|.', re.DOTALL
)
# Tokens that can stand for each other: exchanging them often gives another program that runs.
_ALIKE = [
    frozenset("+ - * / % ^ band bor bshl lor".split()),
    frozenset("= != < <= > >=".split()),
    frozenset("number symbol float unsigned".split()),
    frozenset("min max sum count mean".split()),
    frozenset(", ;".split()),
]
_WORDS = (
    ".decl .type .input .output .comp .init .override .functor .window .lifetime .pragma .plan .limitsize .printsize "
    "( ) [ ] { } , . ; : :- ! != = < <= > >= + - * / % ^ ** @ $ | _ nil true false as min max sum count mean range cat "
    "strlen ord autoinc match contains eqrel choice-domain inline x y z 0 1 -1 1.5 2u number symbol float unsigned "
    'to_number to_string substr band bnot lor #define #if #endif /* */ // " \\ é 9223372036854775808'
).split()


@cache
def originals() -> list[str]:
    return [path.read_text(encoding="utf-8") for path in sorted(CASES.glob("*/*/program.dl"))]


@st.composite
def mutated_programs(draw: st.DrawFn) -> str:
    tokens = _TOKEN.findall(draw(st.sampled_from(originals())))
    for _ in range(draw(st.integers(1, 4))):
        solid = [at for at, token in enumerate(tokens) if not token.isspace() and not token.startswith("/")]
        if not solid:
            break
        at, other = draw(st.sampled_from(solid)), draw(st.sampled_from(solid))
        match draw(
            st.sampled_from(["alike", "alike", "name", "name", "delete", "swap", "repeat", "insert", "replace"])
        ):
            case "alike":
                alike = next((sorted(group) for group in _ALIKE if tokens[at] in group), [tokens[at]])
                tokens[at] = draw(st.sampled_from(alike))
            case "name":
                if tokens[at].isidentifier() and tokens[other].isidentifier():
                    tokens[at] = tokens[other]
            case "delete":
                del tokens[at]
            case "swap":
                tokens[at], tokens[other] = tokens[other], tokens[at]
            case "repeat":
                tokens.insert(at, f"{tokens[at]} ")
            case "insert":
                tokens.insert(at, f"{draw(st.sampled_from(_WORDS))} ")
            case "replace":
                tokens[at] = draw(st.sampled_from(_WORDS))
    return "".join(tokens)


@st.composite
def facts_of(draw: st.DrawFn, program: Program) -> dict[str, set[Tuple]]:
    """A few rows for each relation that is fed from outside."""
    return {
        name: {
            tuple(draw(values(each.kind, program.types)) for each in program.relations[name].fields)
            for _ in range(draw(st.integers(0, 4)))
        }
        for name in program.base_relations
    }


def values(kind: Kind, types: Types, depth: int = 0) -> st.SearchStrategy[Value]:
    if isinstance(kind, Nullable):
        return st.none() | values(kind.of, types).filter(lambda value: value != RESERVED.get(kind.of))
    if is_whole(kind) and kind != NUMBER:
        return st.sampled_from([0, 1, -1 if kind != BOOL else 1, 99]).map(of_whole(kind))
    if kind == NUMBER:
        return st.sampled_from([0, 1, 2, 3, 4, -1, 2**63 - 1, -(2**63)])
    if kind == UNSIGNED:
        return st.sampled_from([0, 1, 2, 2**64 - 1])
    if kind == FLOAT:
        return st.sampled_from([0.0, 1.0, 1.5, -2.0, -0.0, 1e308, float("inf"), float("-inf")])
    if kind == SYMBOL:
        return st.sampled_from(["", "a", "b", "1", "c", "["])
    if isinstance(kind, ListKind):
        return st.lists(values(kind.element, types, depth + 1), max_size=2 if depth < 3 else 0).map(tuple)
    if isinstance(kind, RecordKind):
        if depth >= 3:
            return st.none()
        fields = st.tuples(*(values(each.kind, types, depth + 1) for each in types.records[kind.name]))
        return st.none() | fields
    # Deep down, a branch without values of its own kind inside, if there is one.
    branches = sorted(
        types.adts[kind.name].items(),
        key=lambda branch: (any(isinstance(each.kind, AdtKind) for each in branch[1]), len(branch[1])),
    )
    if depth > 8:
        return st.nothing()
    return st.one_of(
        st.builds(Variant, st.just(name), st.tuples(*(values(each.kind, types, depth + 1) for each in fields)))
        for name, fields in (branches if depth < 3 else branches[:1])
    )
