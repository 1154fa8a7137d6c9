"""How long it takes to parse and to check programs of 5,000 rules.

    .venv/bin/python bench/load_rules.py [RULES]

Two shapes: rules over 50 relations, which form a few large recursive components, and rules with a declaration each.
"""

from __future__ import annotations

import gc
import random
import sys
import time
from collections.abc import Callable
from functools import partial

from whence.lang import load
from whence.lang.parser import parse

REPEATS = 3


def few_relations(rules: int) -> str:
    """Joins, comparisons, negations of base relations and recursion over 50 relations."""
    rng = random.Random(5)
    names = [f"r{at}" for at in range(50)]
    lines = [f".decl {name}(x:number, y:number, w:number)" for name in names]
    lines += [".decl base(x:number, y:number)", ".input base"]
    for at in range(rules):
        head, one, other = (rng.choice(names) for _ in range(3))
        lines.append(
            rng.choice(
                (
                    f"{head}(x, z, v + w) :- {one}(x, y, v), {other}(y, z, w), v < {at}.",
                    f"{head}(x, y, {at}) :- {one}(x, y, _), !base(y, x).",
                    f"{head}(x, y, w) :- base(x, y), {one}(y, _, v), w = v * 2 + {at % 7}, x != y.",
                    f"{head}(y, x, w) :- {one}(x, y, w), ({other}(y, x, _) ; base(x, {at})).",
                )
            )
        )
    return "\n".join([*lines, ".output r0", ""])


def many_relations(rules: int) -> str:
    """A declaration and a rule for each relation, over the two before it."""
    lines = [".decl p0(x:number, y:symbol)", ".input p0", ".decl p1(x:number, y:symbol)", ".input p1"]
    for at in range(2, rules + 2):
        lines += [
            f".decl p{at}(x:number, y:symbol)",
            f'p{at}(x + 1, cat(y, "{at}")) :- p{at - 1}(x, y), p{at - 2}(x, _), x < {at}.',
        ]
    return "\n".join([*lines, f".output p{rules + 1}", ""])


def seconds(work: Callable[[], object]) -> float:
    """The best of a few runs, as the garbage collector is while a program is loaded: off."""
    times = []
    for _ in range(REPEATS):
        gc.collect()
        gc.disable()
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
        gc.enable()
    return min(times)


def main() -> None:
    rules = int(sys.argv[1]) if len(sys.argv) > 1 else 5000
    load("p(1).")  # builds the parser
    print(f"{'program':<16} {'rules':>6} {'parse s':>8} {'check s':>8} {'total s':>8}")
    for make in (few_relations, many_relations):
        text = make(rules)
        program = load(text)
        assert len(program.rules) >= rules
        assert not program.warnings or make is few_relations
        parsing = seconds(partial(parse, program.source))
        total = seconds(partial(load, text))
        print(f"{make.__name__:<16} {rules:>6} {parsing:>8.2f} {total - parsing:>8.2f} {total:>8.2f}")


if __name__ == "__main__":
    main()
