"""Random confederations, with cycles, curation, distrust and changes of mind, from a seed."""

from __future__ import annotations

import random
from collections.abc import Sequence

from tests.exchange.oracle import chase

from whence.exchange.check import load_confederation
from whence.exchange.compile import compile_confederation
from whence.exchange.instance import Edit
from whence.exchange.model import Confederation
from whence.lang.diagnostics import ProgramError
from whence.lang.types import Tuple

VALUES = range(4)


class Story:
    """A confederation that changes now and then, and what its peers do."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        count = self.random.randint(2, 4)
        self.peers = [f"P{at}" for at in range(count)]
        self.schemas: dict[str, int] = {}
        for peer in self.peers:
            for at in range(self.random.randint(1, 2)):
                self.schemas[f"{peer}.R{at}"] = self.random.randint(1, 3)
        self.mappings: dict[str, str] = {}
        self.policies: list[str] = []
        self.numbered = 0
        for _ in range(self.random.randint(2, 5)):
            self.add_mapping()
        for _ in range(self.random.choice((0, 0, 1, 2, 3))):
            self.add_policy()
        self.edits: list[Edit] = []

    def text(self, mappings: Sequence[str], policies: Sequence[str]) -> str:
        blocks = []
        for peer in self.peers:
            relations = [
                f"{name.partition('.')[2]}({', '.join(f'c{at}: number' for at in range(arity))}) key (c0)."
                for name, arity in self.schemas.items()
                if name.startswith(f"{peer}.")
            ]
            blocks.append(f"peer {peer} {{ {' '.join(relations)} }}")
        return "\n".join([*blocks, *mappings, *policies])

    def confederation(self) -> Confederation:
        return load_confederation([("random.peers", self.text(list(self.mappings.values()), self.policies))])

    def _fits(self, mappings: Sequence[str], policies: Sequence[str]) -> bool:
        try:
            compile_confederation(load_confederation([("random.peers", self.text(mappings, policies))]))
        except ProgramError as error:
            # The gate, or a policy that has nothing to say.
            codes = {each.code for each in error.diagnostics if each.severity == "error"}
            if codes <= {"W1002", "W1008", "W1009"}:
                return False
            raise
        return True

    def _atom(self, names: Sequence[str], constants: float) -> str:
        name = self.random.choice(list(self.schemas))
        args = [
            str(self.random.choice(VALUES)) if self.random.random() < constants else self.random.choice(names)
            for _ in range(self.schemas[name])
        ]
        return f"{name}({', '.join(args)})"

    def add_mapping(self) -> None:
        names = ("x", "y", "z")
        self.numbered += 1
        name = f"m{self.numbered}"
        body = [self._atom([*names, "_"], 0.1) for _ in range(self.random.choice((1, 1, 2)))]
        bound = [each for each in names if any(each in atom for atom in body)]
        if self.random.random() < 0.25 and bound:
            body.append(
                f"{self.random.choice(bound)} {self.random.choice(('<', '!=', '='))} {self.random.choice(VALUES)}"
            )
        choices = [*(bound or ["1"]), *("e",) * (self.random.random() < 0.3)]
        heads = [self._atom(choices, 0.1) for _ in range(self.random.choice((1, 1, 2)))]
        exists = "exists e. " if any("e" in head for head in heads) else ""
        text = f"{name}: {', '.join(body)} -> {exists}{', '.join(heads)}."
        if self.random.random() < 0.15:
            one, other = self.random.sample(sorted(self.schemas), 2)
            if self.schemas[one] == self.schemas[other]:
                args = ", ".join(names[: self.schemas[one]])
                text = f"{name}: {one}({args}) <-> {other}({args})."
        if self._fits([*self.mappings.values(), text], self.policies):
            self.mappings[name] = text

    def add_policy(self) -> None:
        if not self.mappings:
            return
        peer = self.random.choice(self.peers)
        mapping, source = self.random.choice(sorted(self.mappings)), self.random.choice(self.peers)
        relation = self.random.choice(sorted(self.schemas))
        args = ["x", "y", "_"][: self.schemas[relation]]
        if self.random.random() < 0.3:
            args[-1] = str(self.random.choice(VALUES))
        condition = (
            f" if x {self.random.choice(('<', '>=', '!='))} {self.random.choice(VALUES)}" if args[0] == "x" else ""
        )
        extra = self.random.choice(("", f" by {mapping}", f" through {mapping}", f" from {source}"))
        owner = relation.partition(".")[0]
        text = self.random.choice(
            (
                f"{peer} distrusts {source}.",
                f"{peer} distrusts {mapping}.",
                f"{owner} distrusts {relation}({', '.join(args)}){extra}{condition}.",
                f"{peer} distrusts base {relation}({', '.join(args)}){condition}.",
                f"{peer} accepts deletions of {source}.",
            )
        )
        if self._fits(list(self.mappings.values()), [*self.policies, text]):
            self.policies.append(text)

    def change(self) -> None:
        """A mapping or a policy more or less."""
        choice = self.random.random()
        if choice < 0.3 and self.mappings:
            name = self.random.choice(sorted(self.mappings))
            others = [text for other, text in self.mappings.items() if other != name]
            if self._fits(others, self.policies):
                del self.mappings[name]
        elif choice < 0.6:
            self.add_mapping()
        elif choice < 0.8 and self.policies:
            self.policies.pop(self.random.randrange(len(self.policies)))
        else:
            self.add_policy()

    def epoch(self) -> list[Edit]:
        """Local rows come and go; rows that are there are rejected, and rejections taken back."""
        confederation = self.confederation()
        current = chase(confederation, self.edits)
        rejected = {(name, row) for op, part, name, row in self.edits if part == "rejected"}
        fresh: list[Edit] = []
        for _ in range(self.random.randint(1, 5)):
            name = self.random.choice(sorted(self.schemas))
            row: Tuple = tuple(self.random.choice(VALUES) for _ in range(self.schemas[name]))
            choice = self.random.random()
            if choice < 0.5:
                fresh.append(Edit("+", "local", name, row))
            elif choice < 0.7:
                local = [each for each in self.edits if each.part == "local"]
                fresh += [self.random.choice(local)._replace(op="-")] if local else []
            elif choice < 0.85 and current[name]:
                chosen = self.random.choice(sorted(current[name], key=repr))
                fresh.append(Edit("+", self.random.choice(("rejected", "lost")), name, chosen))
            elif rejected:
                name, row = self.random.choice(sorted(rejected, key=repr))
                fresh.append(Edit("-", "rejected", name, row))
        self.edits = _net([*self.edits, *fresh])
        return fresh


def _net(edits: Sequence[Edit]) -> list[Edit]:
    kept: dict[tuple[str, str, Tuple], Edit] = {}
    for each in edits:
        if each.op == "+":
            kept[each[1:]] = each
        else:
            kept.pop(each[1:], None)
    return list(kept.values())
