"""What holds whatever the trees and the query: maps between semirings, readers' views, relational algebra inside."""

from __future__ import annotations

import os
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from tests.semiring.values import VALUES
from tests.trees.random_trees import forests, queries

from whence.semiring import Access, Boolean, Semiring
from whence.semiring.homomorphisms import HIERARCHY, Homomorphism
from whence.trees import convert, evaluate_query, evaluate_shredded, load_query
from whence.trees.clearance import erase, view_for
from whence.trees.relational import (
    Algebra,
    Product,
    Project,
    Rename,
    Select,
    Table,
    Union,
    algebra_query,
    decode_relation,
    encode_relations,
)

EXAMPLES = int(os.environ.get("WHENCE_EXAMPLES", "15"))
PHASES = (Phase.explicit, Phase.reuse, Phase.generate)  # queries come from seeds, which cannot be made smaller
ACCESS, BOOLEAN = Access(), Boolean()


@settings(max_examples=EXAMPLES, phases=PHASES)
@given(data=st.data())
def test_what_a_reader_may_not_see_does_not_change_what_he_sees(data: Any) -> None:
    documents = {each: data.draw(forests(*VALUES["access"])) for each in "ST"}
    query = load_query(data.draw(queries(ACCESS)), ACCESS)
    for level in ACCESS.levels[:-1]:
        erased = {name: erase(each, level, ACCESS) for name, each in documents.items()}
        shown = erase(evaluate_query(query, documents, ACCESS), level, ACCESS)
        assert shown == erase(evaluate_query(query, erased, ACCESS), level, ACCESS)
        assert shown == erase(evaluate_shredded(query, erased, ACCESS), level, ACCESS)


@settings(max_examples=EXAMPLES, phases=PHASES)
@given(data=st.data())
def test_a_readers_view_is_the_query_of_what_he_may_see(data: Any) -> None:
    """To booleans: above the reader's level is false, everything else true."""
    documents = {each: data.draw(forests(*VALUES["access"])) for each in "ST"}
    text = data.draw(queries(BOOLEAN)).replace('annot "true"', "annot public").replace('annot "false"', "annot nobody")
    plain = text.replace("annot public", "annot true").replace("annot nobody", "annot false")
    for level in ("public", "secret"):
        plain_documents = {name: view_for(each, level, ACCESS) for name, each in documents.items()}
        shown = view_for(evaluate_query(load_query(text, ACCESS), documents, ACCESS), level, ACCESS)
        assert shown == evaluate_query(load_query(plain, BOOLEAN), plain_documents, BOOLEAN)


@pytest.mark.parametrize("way", HIERARCHY, ids=lambda way: f"{way.source.name}-{way.target.name}")
@settings(max_examples=max(3, EXAMPLES // 10), phases=PHASES)
@given(data=st.data())
def test_maps_of_annotations_commute_with_queries(way: Homomorphism[Any, Any], data: Any) -> None:
    documents = {each: data.draw(forests(*VALUES[way.source.name])) for each in "ST"}
    text = data.draw(queries(BOOLEAN)).replace('annot "true"', "").replace('annot "false"', "")
    before = {name: convert(each, way, way.target) for name, each in documents.items()}
    after = convert(evaluate_query(load_query(text, way.source), documents, way.source), way, way.target)
    assert after == evaluate_query(load_query(text, way.target), before, way.target)


# -- relational algebra

ATTRIBUTES = {"R": ("A", "B"), "S": ("B", "C")}
KRelation = tuple[tuple[str, ...], dict[tuple[str, ...], Any]]


def meaning(algebra: Algebra, database: dict[str, KRelation], semiring: Semiring[Any]) -> KRelation:
    """Annotated relational algebra, from its definition."""
    rows: list[tuple[tuple[str, ...], Any]]
    match algebra:
        case Table(name):
            return database[name]
        case Union(left, right):
            attributes, one = meaning(left, database, semiring)
            others, other = meaning(right, database, semiring)
            rows = [*one.items(), *((_pick(others, row, attributes), value) for row, value in other.items())]
        case Project(of, attributes):
            own, inner = meaning(of, database, semiring)
            rows = [(_pick(own, row, attributes), value) for row, value in inner.items()]
        case Select(of, attribute, other_name, is_value):
            attributes, inner = meaning(of, database, semiring)
            rows = []
            for row, value in inner.items():
                cells = dict(zip(attributes, row, strict=True))
                if cells[attribute] == (other_name if is_value else cells[other_name]):
                    rows.append((row, value))
        case Product(left, right):
            own, one = meaning(left, database, semiring)
            others, other = meaning(right, database, semiring)
            attributes = (*own, *others)
            rows = [((*a, *b), semiring.times(x, y)) for a, x in one.items() for b, y in other.items()]
        case Rename(of, attribute, to):
            own, inner = meaning(of, database, semiring)
            attributes = tuple(to if each == attribute else each for each in own)
            rows = list(inner.items())
    found: dict[tuple[str, ...], Any] = {}
    for row, value in rows:
        found[row] = semiring.plus(found.get(row, semiring.zero), value)
    return attributes, {row: value for row, value in found.items() if value != semiring.zero}


def _pick(attributes: tuple[str, ...], row: tuple[str, ...], wanted: tuple[str, ...]) -> tuple[str, ...]:
    cells = dict(zip(attributes, row, strict=True))
    return tuple(cells[name] for name in wanted)


@st.composite
def algebras(draw: st.DrawFn, depth: int = 3) -> tuple[Algebra, tuple[str, ...]]:
    """An expression and its attributes."""
    if depth == 0:
        name = draw(st.sampled_from(sorted(ATTRIBUTES)))
        return Table(name), ATTRIBUTES[name]
    of, attributes = draw(algebras(depth - 1))
    match draw(st.sampled_from(("union", "project", "select", "value", "product", "rename"))):
        case "union":
            other = draw(st.sampled_from((of, Select(of, attributes[0], "a", is_value=True))))
            return Union(of, other), attributes
        case "project":
            kept = tuple(draw(st.lists(st.sampled_from(attributes), min_size=1, unique=True)))
            return Project(of, kept), kept
        case "select":
            return Select(of, *draw(st.tuples(*[st.sampled_from(attributes)] * 2))), attributes
        case "value":
            return Select(of, draw(st.sampled_from(attributes)), "b", is_value=True), attributes
        case "rename":
            old, new = draw(st.sampled_from(attributes)), f"N{depth}"
            return Rename(of, old, new), tuple(new if each == old else each for each in attributes)
        case _:
            table: Algebra = Table("S")
            for each in ATTRIBUTES["S"]:
                table = Rename(table, each, f"{each}{depth}")
            return Product(of, table), (*attributes, *(f"{each}{depth}" for each in ATTRIBUTES["S"]))


@pytest.mark.parametrize("name", ["polynomial", "natural", "access", "integer", "why"])
@settings(max_examples=max(6, EXAMPLES // 5))
@given(data=st.data())
def test_relational_algebra_has_the_same_annotations_inside_trees(name: str, data: Any) -> None:
    semiring, values = VALUES[name]
    nonzero = values.map(lambda value: semiring.one if value == semiring.zero else value)
    database = {
        name: (attributes, data.draw(st.dictionaries(st.tuples(*[st.sampled_from("ab")] * 2), nonzero, max_size=3)))
        for name, attributes in ATTRIBUTES.items()
    }
    algebra, attributes = data.draw(algebras())
    query = load_query(algebra_query(algebra), semiring)
    document = encode_relations(database, semiring)
    (found,) = evaluate_query(query, {"d": document}, semiring)
    own, rows = meaning(algebra, database, semiring)
    assert decode_relation(found, attributes) == {_pick(own, row, attributes): value for row, value in rows.items()}
    assert evaluate_shredded(query, {"d": document}, semiring) == evaluate_query(query, {"d": document}, semiring)
