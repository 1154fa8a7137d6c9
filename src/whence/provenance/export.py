"""Derivation graphs for other programs: Graphviz, W3C PROV, and the pictures and pages that are made elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from json import dumps

from whence.lang.program import Program
from whence.provenance.graph import Derivation, DerivationGraph, Fact
from whence.provenance.layout import nodes_of
from whence.provenance.page import to_html
from whence.provenance.picture import FILLS, STROKES, to_svg
from whence.provenance.proofs import Proof
from whence.provenance.show import show_fact, show_rules

_NAMESPACE = "urn:whence:"


def graph_of_proof(proofs: Sequence[Proof]) -> DerivationGraph:
    """Only what the proofs use."""
    firings: dict[Fact, dict[Derivation, None]] = {}
    base: set[Fact] = set()
    for proof in proofs:
        for part in proof:
            if part.firing is None:
                base.add(part.fact)
            else:
                firings.setdefault(part.fact, {})[part.firing] = None
    roots = tuple(dict.fromkeys(proof.fact for proof in proofs))
    return DerivationGraph(roots, {fact: tuple(each) for fact, each in reversed(firings.items())}, frozenset(base))


def to_dot(graph: DerivationGraph, _program: Program) -> str:
    nodes = nodes_of(graph)
    names = {id(node): f"n{at}" for at, node in enumerate(nodes)}
    lines = ["digraph why {", '  node [fontname="sans-serif", fontsize=11, style=filled];']
    for node in nodes:
        shape = "ellipse" if node.kind == "firing" else "box"
        dashed = ', style="filled,dashed"' if node.kind == "cut" else ""
        look = f'fillcolor="{FILLS[node.kind]}", color="{STROKES[node.kind]}"{dashed}'
        lines.append(f"  {names[id(node)]} [label={dumps(node.label, ensure_ascii=False)}, shape={shape}, {look}];")
    lines += [f"  {names[id(upper)]} -> {names[id(lower)]};" for upper in nodes for lower in upper.below]
    return "\n".join([*lines, "}"])


def to_prov(graph: DerivationGraph, program: Program) -> str:
    """W3C PROV as JSON: facts are entities, firings activities, rules the plans that they follow."""
    from prov.model import ProvDocument, ProvEntity  # noqa: PLC0415 - only this needs it, and it takes a while to import

    document = ProvDocument()
    document.add_namespace("whence", _NAMESPACE)
    entities = {
        fact: document.entity(f"whence:fact{at}", {"prov:label": show_fact(fact), "prov:type": _kind(fact, graph)})
        for at, fact in enumerate(sorted(graph.facts, key=show_fact))
    }
    engine = document.agent("whence:engine", {"prov:label": "Whence"})
    lines = {line.split()[0]: line for line in show_rules(program, [rule.name for rule in program.rules])}
    plans: dict[str, ProvEntity] = {}
    number = 0
    for fact, firings in graph.derivations.items():
        for firing in firings:
            number += 1
            label = {"prov:label": f"{firing.rule} made {show_fact(fact)}"}
            activity = document.activity(f"whence:firing{number}", other_attributes=label)
            if firing.rule not in plans:
                about = {"prov:type": "prov:Plan", "prov:label": lines.get(firing.rule, firing.rule)}
                plans[firing.rule] = document.entity(f"whence:rule{len(plans)}", about)
            document.wasGeneratedBy(entities[fact], activity)
            document.wasAssociatedWith(activity, engine, plans[firing.rule])
            for premise in dict.fromkeys(firing.premises):
                document.used(activity, entities[premise])
                document.wasDerivedFrom(entities[fact], entities[premise], activity)
    return str(document.serialize(format="json", indent=2))


def _kind(fact: Fact, graph: DerivationGraph) -> str:
    return "whence:BaseFact" if fact in graph.base else "whence:DerivedFact"


EXPORTS: Mapping[str, Callable[[DerivationGraph, Program], str]] = {
    "dot": to_dot,
    "svg": to_svg,
    "html": to_html,
    "prov": to_prov,
}
