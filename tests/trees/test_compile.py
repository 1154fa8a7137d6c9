"""The rules of queries: how they join, and that elements of let stay apart."""

from __future__ import annotations

from whence.semiring import Boolean, Natural
from whence.session import evaluate
from whence.trees import evaluate_query, evaluate_shredded, load_query, parse_document
from whence.trees.compile import INSIDE, MEMBER, compile_query
from whence.trees.shred import base_rows
from whence.trees.values import height

NATURAL = Natural()


def test_where_is_a_join_and_not_a_comparison() -> None:
    compiled = compile_query(
        load_query("for $x in $d/a, $y in $d/b where $x/k = $y/k return <p>{ $x, $y }</p>", NATURAL)
    )
    (joined,) = (text for head, text in compiled.rules if head == "given")
    assert "=" not in joined
    assert '"' not in joined


def test_only_descendant_steps_recurse_and_not_with_a_depth() -> None:
    query = load_query("<r>{ for $x in $d//a return <q>{ $x//b }</q> }</r>", NATURAL)
    assert any(stratum.recursive for stratum in compile_query(query).program.strata)
    assert not any(stratum.recursive for stratum in compile_query(query, depth=3).program.strata)


def test_written_out_to_the_depth_of_a_document_it_gives_the_same_rows() -> None:
    boolean = Boolean()
    document = {"d": parse_document("<a><b><a><b>1</b></a></b><b><c/></b></a>", boolean).forest}
    query = load_query("<r>{ for $x in $d//a return <q>{ $x//b, (<b>{ $x }</b>)//b }</q> }</r>", boolean)
    views = []
    for compiled in (compile_query(query), compile_query(query, depth=height(document["d"]))):
        given = base_rows(compiled, document, boolean)
        views.append(evaluate(compiled.program, given, wanted=(MEMBER, INSIDE)))
    assert views[0] == views[1]
    assert views[0][INSIDE]


def test_elements_that_let_names_are_made_wherever_they_are_used() -> None:
    document = parse_document("<d><a><b>1</b></a><a><b>2</b></a></d>", NATURAL).forest
    text = """for $z in $d/a return
        let $v := (for $x in (<c>{ $z/* }</c>, <e>{ $z }</e>), $y in $x/b return $y) return <r>{ $v, <s>{ $v }</s> }</r>"""
    query = load_query(text, NATURAL)
    answer = evaluate_query(query, {"d": document}, NATURAL)
    assert evaluate_shredded(query, {"d": document}, NATURAL) == answer
    assert len(answer) == 2
