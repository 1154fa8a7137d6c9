"""Documents to trees: what becomes of elements, attributes, objects and arrays, and what is refused or lost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.semiring.values import VALUES
from tests.trees.random_trees import forests

from whence.lang import ProgramError
from whence.semiring import NATURAL_POLYNOMIALS, Access, Boolean, Natural
from whence.trees import annotate, parse_document, read_policy
from whence.trees.documents import MAX_DEPTH, annotate_by
from whence.trees.render import annotations_of, one_line, xml_lines
from whence.trees.syntax import PathStep

NATURAL, ACCESS = Natural(), Access()


def shown(text: str, form: str = "xml", semiring: Any = NATURAL) -> str:
    ((tree, value),) = parse_document(text, semiring, form=form).forest.items()
    assert value == semiring.one
    return one_line(tree, semiring)


def test_elements_attributes_and_text() -> None:
    assert shown('<a id="7"><b>x</b><b annot="2"/></a>') == "a[@id[7], b^2, b[x]]"
    assert shown("<a><![CDATA[1 < 2]]><!-- not this --></a>") == "a[1 < 2]"
    assert shown('<a xmlns="urn:x"><b/></a>') == "{urn:x}a[{urn:x}b]"
    assert shown('<_ label="no name"><_ label="7" annot="3"/></_>') == "no name[7^3]"


def test_objects_arrays_and_values() -> None:
    text = '{"a": [1, {"b": true}], "c": null, "d": [[1.50, "x"]], "annot": "1"}'
    assert shown(text, "json") == "root[a[1], a[b[true]], c, d[item[1.50], item[x]]]"


def test_equal_siblings_are_added_up_and_said() -> None:
    document = parse_document("<a><b>x</b><b>x</b></a>", NATURAL)
    assert [one_line(tree, NATURAL) for tree in document.forest] == ["a[b^2[x]]"]
    assert document.losses == ("/a: equal siblings have become one, with their annotations added up",)


def test_lost_order_is_said() -> None:
    assert parse_document("<a><p>x<b/>y</p><p>x<c/></p></a>", NATURAL).losses == (
        "/a/p: text and elements are mixed: their order is lost (2 times)",
    )
    assert parse_document('{"at": [1.5, 2.5]}', NATURAL, form="json").losses == (
        "/root: the order of the items of at is lost",
    )


def test_nodes_can_stand_for_themselves() -> None:
    ((tree, value),) = parse_document("<a><b/></a>", NATURAL_POLYNOMIALS, tokens=True).forest.items()
    assert (str(value), one_line(tree, NATURAL_POLYNOMIALS)) == ("a#1", "a[b^b#2]")


@pytest.mark.parametrize(
    ("text", "form", "place"),
    [
        ("<a>\n<b></a>", "xml", "doc:2:6: error[W1407]: not XML: mismatched tag"),
        ('<!DOCTYPE a [<!ENTITY x "y">]><a>&x;</a>', "xml", "error[W1407]: entities are refused"),
        ('<!DOCTYPE a SYSTEM "x.dtd"><a>&x;</a>', "xml", "error[W1407]: entities are refused"),
        ('<a><b annot="many"/></a>', "xml", "doc:1:4: error[W1404]: 'many' is not a whole number"),
        ('{"a": 1', "json", "doc:1:8: error[W1407]: not JSON"),
        ('{"a": {"annot": "-1"}}', "json", "doc:1:8: error[W1404]: -1 is not a value of natural"),
        ('{"annot": ["1"]}', "json", "error[W1407]: annot is not a text"),
        ("<a>" * (MAX_DEPTH + 1) + "</a>" * (MAX_DEPTH + 1), "xml", "error[W1406]: this is nested deeper than"),
        ("[" * 100_000, "json", "W14"),
    ],
)
def test_mistakes_are_shown_where_they_are(text: str, form: str, place: str) -> None:
    with pytest.raises(ProgramError) as error:
        parse_document(text, NATURAL, name="doc", form=form)
    assert place in str(error.value)


def test_a_policy_annotates_what_paths_lead_to(tmp_path: Path) -> None:
    policy = tmp_path / "policy.txt"
    policy.write_text("# clearances\n//c   secret\n/a/b/*  confidential # values\n")
    forest = parse_document("<a><b>x</b><c><c/></c></a>", ACCESS).forest
    for path, level in read_policy(policy, ACCESS):
        forest = annotate(forest, path, level, ACCESS)
    assert [one_line(tree, ACCESS) for tree in forest] == ["a[b[x^confidential], c^secret[c^secret]]"]


def test_a_node_is_annotated_once_however_many_ways_lead_to_it() -> None:
    forest = parse_document("<a><a><b/></a></a>", NATURAL).forest
    path = (PathStep(True, "a"), PathStep(True, "b"))
    doubled = annotate_by(forest, path, lambda value: 2 * value, NATURAL)
    assert [one_line(tree, NATURAL) for tree in doubled] == ["a[a[b^2]]"]


def test_mistakes_of_a_policy_are_shown_all(tmp_path: Path) -> None:
    policy = tmp_path / "policy.txt"
    policy.write_text("//a  hidden\nname secret\n/a/ secret\n")
    with pytest.raises(ProgramError) as error:
        read_policy(policy, ACCESS)
    assert [each.code for each in error.value.diagnostics] == ["W1404", "W1407", "W1401"]


@given(st.data())
def test_what_is_written_as_xml_is_read_back(data: Any) -> None:
    natural, values = VALUES["natural"]
    forest = data.draw(forests(natural, values))
    odd = {"a": "a b", "b": "@id"}
    renamed = {label: data.draw(st.sampled_from((label, odd[label]))) for label in "ab"}
    lines = "\n".join(xml_lines(forest, annotations_of(natural)))
    for label, other in renamed.items():
        lines = lines.replace(f"<{label} ", f'<_ label="{other}" ').replace(f"<{label}>", f'<_ label="{other}">')
        lines = lines.replace(f"<{label}/>", f'<_ label="{other}"/>').replace(f"</{label}>", "</_>")
    (whole,) = parse_document(f"<top>{lines}</top>", natural).forest
    again = "\n".join(xml_lines(whole.children, annotations_of(natural)))
    (once_more,) = parse_document(f"<top>{again}</top>", natural).forest
    assert once_more == whole


def test_nothing_is_shown_of_certain_annotations() -> None:
    (tree,) = parse_document("<a><b>1</b></a>", Boolean()).forest
    assert list(xml_lines(tree.children, annotations_of(Boolean()))) == ["<b>1</b>"]
