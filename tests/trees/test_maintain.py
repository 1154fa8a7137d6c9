"""What is kept while documents change is what an evaluation from scratch gives, in every semiring."""

from __future__ import annotations

import os
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from tests.semiring.values import VALUES
from tests.trees.random_trees import forests, queries, semirings

from whence.semiring import Access, Natural, Semiring, events
from whence.trees import Change, Delete, Insert, Maintained, Reannotate, Tree, load_query, parse_document
from whence.trees.evaluate import evaluate_query
from whence.trees.nodes import Edit, Nodes
from whence.trees.shred import decode
from whence.trees.values import Forest

PHASES = (Phase.explicit, Phase.reuse, Phase.generate)  # queries come from seeds, which cannot be made smaller
EXAMPLES = int(os.environ.get("WHENCE_EXAMPLES", "3"))


def documents_of(nodes: Nodes[Any], semiring: Semiring[Any], names: str) -> dict[str, Forest[Any]]:
    """The documents as they are after edits, by what their nodes say."""
    inside = {row: nodes.annotations[node] for node, row in nodes.rows.items()}
    found = {}
    for name in names:
        members = {row[1:]: value for row, value in inside.items() if row[0] == name}
        found[name] = decode(semiring, members, inside)
    return found


def some_edits(
    data: Any, kept: Maintained[Any], values: st.SearchStrategy[Any], names: tuple[str, ...]
) -> list[Edit[Any]]:
    edits: list[Edit[Any]] = []
    nodes = sorted(kept.nodes.rows)
    for _ in range(data.draw(st.integers(1, 2))):
        match data.draw(st.sampled_from(("insert", "delete", "annotate"))):
            case "insert":
                (tree, *_) = data.draw(forests(kept.semiring, st.just(kept.semiring.one), 2))
                edits.append(Insert(data.draw(st.sampled_from((*names, *nodes))), tree, data.draw(values)))
            case "annotate" if nodes:
                edits.append(Reannotate(data.draw(st.sampled_from(nodes)), data.draw(values)))
            case _ if nodes:
                return [*edits, Delete(data.draw(st.sampled_from(nodes)))]
    return edits


@pytest.mark.parametrize("name", semirings())
@settings(max_examples=EXAMPLES, phases=PHASES)
@given(data=st.data())
def test_answers_follow_edits_and_versions(name: str, data: Any) -> None:
    semiring, values = VALUES[name]
    query = load_query(data.draw(queries(semiring)), semiring)
    documents = {each: data.draw(forests(semiring, values)) for each in "ST"}
    kept = Maintained(query, documents, semiring)
    assert kept.answer() == evaluate_query(query, documents, semiring)
    for _ in range(3):
        if not query.documents:
            break
        before = kept.answer()
        if data.draw(st.booleans()):
            which = data.draw(st.sampled_from(query.documents))
            changes = kept.replace(which, data.draw(forests(semiring, values)))
        else:
            edits = some_edits(data, kept, values, query.documents)
            zero = [each.node for each in edits if isinstance(each, Reannotate) and each.annotation == semiring.zero]
            changes = kept.apply(edits[:1] if zero else edits)
        now = documents | documents_of(kept.nodes, semiring, query.documents)
        assert kept.answer() == evaluate_query(query, now, semiring)
        assert changes or kept.answer() == before


def test_what_is_derived_with_zero_is_not_in_the_answer() -> None:
    """Two events exclude each other; then one of them does not any more."""
    worlds = events("pq")
    p, q = frozenset("p"), frozenset("q")
    document: Forest[Any] = Forest({Tree("a", Forest({Tree("b", Forest({})): q})): p})
    kept = Maintained(load_query("$d/b", worlds), {"d": document}, worlds)
    assert kept.answer() == Forest({})
    (node,) = kept.nodes.find("d", "a")
    assert kept.apply([Reannotate(node, p | q)]) == [Change((), Tree("b", Forest({})), None, q)]
    assert kept.apply([Reannotate(node, p)]) == [Change((), Tree("b", Forest({})), q, None)]


def test_a_version_keeps_the_nodes_of_what_is_equal() -> None:
    semiring = Natural()
    document = parse_document("<a><p><n>1</n><m>2</m></p><p><n>3</n></p></a>", semiring).forest
    nodes = Maintained(load_query("$d", semiring), {"d": document}, semiring).nodes
    version = parse_document("<a><p><n>3</n></p><p><n>1</n><m>4</m></p></a>", semiring).forest
    (two,) = nodes.find("d", "a", "p", "m", "2")
    (parent,) = nodes.find("d", "a", "p", "m")
    assert nodes.edits_to("d", version) == [Insert(parent, Tree("4", document.__class__({})), 1), Delete(two)]


def test_another_clearance_reaches_the_answer() -> None:
    access = Access()
    document = parse_document("<a><b>1</b></a>", access).forest
    kept = Maintained(load_query("element r { $d/b }", access), {"d": document}, access)
    (node,) = kept.nodes.find("d", "a")
    (change,) = kept.apply([Reannotate(node, "secret")])
    assert (change.path, change.before, change.after) == (("r",), "public", "secret")


def test_work_follows_the_change_and_not_the_document() -> None:
    access = Access()
    items = "".join(f"<p><n>{number}</n></p>" for number in range(300))
    document = parse_document(f"<a>{items}</a>", access).forest
    kept = Maintained(load_query("for $p in $d/p return <q>{ $p/n }</q>", access), {"d": document}, access)
    kept.apply([Delete(kept.nodes.find("d", "a", "p", "n", "7")[0])])
    assert kept.session.last_epoch["derivations"] < 10


def test_what_is_not_there_cannot_be_edited() -> None:
    natural = Natural()
    kept = Maintained(load_query("$d", natural), {"d": parse_document("<a/>", natural).forest}, natural)
    with pytest.raises(ValueError, match="there is no node e"):
        kept.apply([Delete("e")])
