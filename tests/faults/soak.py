"""Epochs of symbols never seen before, one after the other: python soak.py EPOCHS [STATE]. Tells the memory as it goes on.

In each epoch a link between two new names comes and the one before goes, and a row with a lifetime is refreshed. The views are a
closure, lists of names and a count.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

from whence import Update, load
from whence.io.changes import Epoch
from whence.memory import look_at_memory
from whence.pipeline.keeper import ResidentKeeper
from whence.pipeline.store import WholeStore

PROGRAM = """
.decl link(x:symbol, y:symbol) .input link
.decl alive(x:symbol) .input alive
.lifetime alive 1000000000
.decl reach(x:symbol, y:symbol)
reach(x, y) :- link(x, y).
reach(x, z) :- reach(x, y), link(y, z).
.decl path(p:list<symbol>)
path([x, y]) :- link(x, y).
path([x | p]) :- link(x, y), path(p), p = [y | _].
.decl links(n:number)
links(n) :- n = count : { link(_, _) }.
.output reach, path, links, alive
"""
TOGETHER = 25  # epochs that are made durable at once
TOLD = 20


def epochs(count: int) -> Iterator[list[Epoch]]:
    for start in range(0, count, TOGETHER):
        yield [
            Epoch(
                [
                    Update("+", "link", (f"from {at}", f"to {at}")),
                    Update("-", "link", (f"from {at - 1}", f"to {at - 1}")),
                    Update("+", "alive", ("hub",), float(at)),
                ]
            )
            for at in range(start, min(start + TOGETHER, count))
        ]


def main(count: int, state: Path | None) -> None:
    program = load(PROGRAM)
    store = None if state is None else WholeStore.open(state, program)
    keeper = ResidentKeeper(program, store=store, facts={"link": [("hub", "a")]})
    done, told = 0, 0
    for each in epochs(count):
        keeper.apply(each)
        done += len(each)
        if done * TOLD >= told * count:
            told += 1
            memory = look_at_memory()
            assert memory is not None
            stats = keeper.stats()
            figures = {"epochs": done, "bytes": memory.held, "values": stats["values"]}
            print(json.dumps({**figures, "told": stats["value_bytes"] + sum(stats["bytes"].values())}), flush=True)
    assert keeper.view("reach") == {("hub", "a"), (f"from {count - 1}", f"to {count - 1}")}
    assert keeper.view("path") == {(("hub", "a"),), ((f"from {count - 1}", f"to {count - 1}"),)}
    keeper.close()


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]) if len(sys.argv) > 2 else None)
