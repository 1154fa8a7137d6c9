"""A run of many epochs that touches all that state is made of: recursion, negation, aggregates, windows, bad records."""

from __future__ import annotations

import json
import random
from pathlib import Path

PROGRAM = """\
.decl link(src: symbol, dst: symbol, cost: number)
.input link
.lifetime link 90
.decl node(name: symbol)
.input node
.window node(rows=6)
.decl reach(src: symbol, dst: symbol)
reach(x, y) :- link(x, y, _).
reach(x, z) :- reach(x, y), link(y, z, _).
.decl lonely(name: symbol)
lonely(x) :- node(x), !reach(x, _).
.decl cheapest(src: symbol, cost: number)
cheapest(x, c) :- link(x, _, _), c = min d : { link(x, _, d) }.
.output reach
.output lonely
.output cheapest
"""
# The same of relations that cannot be split so that parts need nothing of each other.
TOGETHER = """\
.decl link(src: symbol, dst: symbol, cost: number)
.input link
.lifetime link 90
.decl node(name: symbol)
.input node
.window node(rows=6)
.decl reach(src: symbol, dst: symbol)
reach(x, y) :- link(x, y, _).
reach(x, z) :- reach(x, y), reach(y, z).
.decl lonely(name: symbol)
lonely(x) :- node(x), !reach(_, x).
.decl way(src: symbol, dst: symbol, cost: number)
way(x, y, c) :- link(x, y, c).
way(x, z, c + d) :- cheapest(x, y, c), cheapest(y, z, d).
.decl cheapest(src: symbol, dst: symbol, cost: number)
cheapest(x, y, c) :- way(x, y, _), c = min d : { way(x, y, d) }.
.decl size(n: number)
size(n) :- n = count : { reach(_, _) }.
.output reach
.output lonely
.output cheapest
.output size
"""
POISON = (
    '{"op": "+", "relation": "link", "tuple": ["a"]}',
    "?",
    '{"op": "+", "relation": "reach", "tuple": ["a", "b"]}',
)


def write_workload(folder: Path, epochs: int, *, seed: int, program: str = PROGRAM) -> None:
    """`program.dl` and `updates.jsonl`."""
    source = random.Random(seed)
    names = "abcdefgh"
    lines: list[str] = []
    for epoch in range(epochs):
        for _ in range(source.randrange(0, 5)):
            op, time = source.choice("++-"), epoch + source.random() * 10 - 5
            if source.random() < 0.8:
                row: list[object] = [source.choice(names), source.choice(names), source.randrange(3)]
                update = {"op": op, "relation": "link", "tuple": row, "time": time}
            else:
                update = {"op": op, "relation": "node", "tuple": [source.choice(names)]}
            lines.append(json.dumps(update))
        if source.random() < 0.1:
            lines.append(source.choice(POISON))
        if source.random() < 0.1:
            lines.append(json.dumps({"tick": epoch}))
        lines.append('{"commit": true}')
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "program.dl").write_text(program)
    (folder / "updates.jsonl").write_text("".join(f"{line}\n" for line in lines))
