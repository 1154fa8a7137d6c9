"""Several nodes hold the views of a program together: each fires some of its rules, and they tell each other what they have."""

from __future__ import annotations

import os
import warnings
from random import Random

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from tests.nodes import ToyNetwork
from tests.properties.counting import count_sequence
from tests.properties.programs import Run, runs

from whence import ProgramError, Update, load
from whence.lang.types import Tuple
from whence.limits import Limits, RunawayError
from whence.node import Node, Support
from whence.prepared import prepare
from whence.reference import evaluate

EXAMPLES = int(os.environ.get("WHENCE_EXAMPLES", "60"))
LIMITS = Limits(max_rounds=200, max_tuples=20_000)


def placed(text: str) -> tuple[str, int]:
    """The program with one more condition in each rule, which says at which nodes it fires."""
    lines, count = [], 0
    for line in text.splitlines():
        if ":-" in line and "<= " not in line.partition(":-")[0]:
            lines.append(f"{line.rstrip().removesuffix('.')}, at{count}().")
            count += 1
        else:
            lines.append(line)
    return "\n".join([*lines, *(f".decl at{at}()\n.input at{at}" for at in range(count))]), count


def check_nodes(run: Run, size: int, seed: int) -> None:
    random = Random(seed)
    text, count = placed(run.text)
    try:
        program = load(text)
    except ProgramError:
        assume(False)
    prepared = prepare(program)
    probe = Node(prepared)
    heads = {
        f"at{at}": {rule.head.relation for rule in program.rules if f"at{at}()" in str(rule)} for at in range(count)
    }
    given_to: list[set[str]] = [set() for _ in range(size)]
    for rule in program.rules:
        condition = next((atom.relation for atom in rule.body if getattr(atom, "relation", "").startswith("at")), None)
        if condition is not None:
            heads[condition].add(rule.head.relation)
    for condition, names in heads.items():
        everywhere = not all(probe.takes_support(name) for name in names)
        chosen = range(size) if everywhere else random.sample(range(size), random.randint(1, size))
        for at in chosen:
            given_to[at].add(condition)

    def route(sender: int, support: Support) -> list[int]:
        name = support.relation
        if "!" in name or name in heads or not probe.takes_support(name):
            return []
        return [at for at in range(size) if at != sender]

    network = ToyNetwork([prepared] * size, route, random)
    base: dict[str, set[Tuple]] = {name: {()} for name in heads}
    network.epoch([[Update("+", name, ()) for name in sorted(own)] for own in given_to])
    total = [node.views() for node in network.nodes]
    for epoch in run.epochs:
        updates: list[list[Update]] = [[] for _ in range(size)]
        for op, relation, row, _ in epoch:
            rows = base.setdefault(relation, set())
            (rows.add if op == "+" else rows.discard)(row)
            updates[hash((relation, row)) % size].append(Update(op, relation, row))
        try:
            expected = evaluate(program, base, limits=LIMITS)
        except RunawayError:
            return
        changes = network.epoch(updates)
        for node, changed, sums in zip(network.nodes, changes, total, strict=True):
            for op, name, row, _ in changed:
                assert (row in sums[name]) == (op == "-"), "a change that changes nothing"
                (sums[name].remove if op == "-" else sums[name].add)(row)
            views = node.views()
            assert sums == views
            for name in views.keys() - heads.keys():
                assert views[name] == expected[name], name
    count_sequence()


@settings(
    max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much]
)
@given(run=runs(), size=st.integers(2, 4), seed=st.integers(0, 10**6))
def test_nodes_that_share_rules_agree_with_the_reference(run: Run, size: int, seed: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_nodes(run, size, seed)
