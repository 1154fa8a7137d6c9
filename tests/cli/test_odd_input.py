"""Updates that are odd and paths that are not what they should be: nothing of it stops a run for good."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from whence.io.json_text import Json, read_json, write_json

Whence = Callable[..., Result]

LISTS = """\
.type List = [head: number, tail: List]
.type Tree = Leaf {} | Node {value: number, next: Tree}
.decl given(xs: List)
.input given
.decl tree(t: Tree)
.input tree
.decl twice(xs: List)
twice([1, [2, xs]]) :- given(xs).
.decl counted(n: number, t: Tree)
counted(0, $Leaf()).
counted(n + 1, $Node(n, t)) :- counted(n, t), goal(m), n < m.
.decl goal(n: number)
.input goal
.decl longest(t: Tree)
longest(t) :- counted(n, t), goal(n).
.decl same(xs: List)
same(xs) :- given(xs), twice([1, [2, xs]]).
.output twice, same, longest, tree
"""
DEPTH = 3000


@pytest.fixture
def run(folder: Path, whence: Whence) -> Callable[..., Result]:
    def run(*options: str, program: str = "program.dl", updates: str = "updates.jsonl") -> Result:
        return whence("run", program, "--updates", updates, "--no-spark", "--quiet", *options)

    return run


def update(op: str, relation: str, value: Json) -> str:
    return write_json({"op": op, "relation": relation, "tuple": [value]})


def linked(count: int) -> Json:
    value: Json = None
    for each in range(count):
        value = [each, value]
    return value


def nested_text(count: int) -> str:
    return "".join(f"$Node({count - 1 - at}, " for at in range(count)) + "$Leaf" + ")" * count


def test_values_may_be_as_deep_as_memory_allows(run: Callable[..., Result], whence: Whence) -> None:
    Path("program.dl").write_text(LISTS)
    deep = linked(DEPTH)
    lines = [
        update("+", "given", deep),
        update("+", "tree", nested_text(DEPTH)),
        '{"commit": true}',
        update("+", "goal", 1200),
        '{"commit": true}',
    ]
    Path("updates.jsonl").write_text("\n".join(lines) + "\n")
    options = ("--state", "state", "--changes", "changes.jsonl")
    assert run(*options).exit_code == 0
    # Again, as after a restart: the same list is a no-op, then it goes.
    lines += [update("+", "given", linked(DEPTH)), '{"commit": true}', update("-", "given", linked(DEPTH))]
    Path("updates.jsonl").write_text("\n".join(lines) + "\n")
    assert run(*options).exit_code == 0
    # As text, since Python compares lists recursively.
    changes = [read_json(line) for line in Path("changes.jsonl").read_text().splitlines()]
    found = {(each["epoch"], each["op"], each["relation"]): write_json(each["tuple"]) for each in changes}  # type: ignore[index,call-overload]
    assert found[1, "+", "twice"] == write_json([[1, [2, deep]]])
    assert found[1, "+", "same"] == found[4, "-", "same"] == write_json([deep])
    assert found[1, "+", "tree"] == write_json([nested_text(DEPTH)])
    assert found[2, "+", "longest"] == write_json([nested_text(1200)])
    assert not any(key[0] == 3 for key in found)
    assert not Path("program.dead.jsonl").exists()
    for options in ((), ("--reference",)):
        assert whence("state", "verify", "state", *options).stdout.startswith("ok:")
    assert whence("state", "compact", "state").exit_code == 0
    assert json.loads(whence("state", "ls", "state", "--json").stdout)["tuples"]["longest"] == 1
