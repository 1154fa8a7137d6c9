"""Components: what an instance's names mean, inheritance and overriding."""

from __future__ import annotations

import pytest

from whence.lang import ProgramError, load
from whence.lang.types import Tuple
from whence.reference import evaluate

REACH = """
.comp Reach<T> {
    .decl edge(x: T, y: T)
    .decl path(x: T, y: T)
    path(x, y) :- edge(x, y).
    path(x, z) :- path(x, y), edge(y, z).
}
"""


def derive(text: str) -> dict[str, set[Tuple]]:
    return evaluate(load(text), {})


def errors(text: str) -> list[str]:
    with pytest.raises(ProgramError) as caught:
        load(text)
    return [each.text for each in caught.value.diagnostics if each.severity == "error"]


def test_instances_are_apart_and_have_their_own_types() -> None:
    views = derive(
        REACH + '.init n = Reach<number>\n.init s = Reach<symbol>\nn.edge(1, 2). n.edge(2, 3).\ns.edge("a", "b").'
    )
    assert views["n.path"] == {(1, 2), (2, 3), (1, 3)}
    assert views["s.path"] == {("a", "b")}


def test_names_are_looked_up_inside_then_outside() -> None:
    views = derive(
        ".decl a(x: number)\na(1).\n.decl b(x: number)\nb(10).\n"
        ".comp C { .decl a(x: number) a(2). .decl r(x: number) r(x) :- a(x). r(x) :- b(x). }\n.init c = C"
    )
    assert views["c.r"] == {(2,), (10,)}


def test_instances_inside_instances_have_dotted_names() -> None:
    views = derive(
        ".comp Inner { .decl r(x: number) r(1). }\n"
        ".comp Outer { .init in = Inner .decl r(x: number) r(x + 1) :- in.r(x). }\n.init o = Outer\n"
        ".decl top(x: number)\ntop(x) :- o.in.r(x) ; o.r(x)."
    )
    assert views["top"] == {(1,), (2,)}
    assert set(views) == {"o.in.r", "o.r", "top"}


def test_components_inside_components_are_instantiated_where_they_are_visible() -> None:
    views = derive(".comp A { .comp B { .decl r(x: number) r(7). } .init b = B }\n.init a = A")
    assert views == {"a.b.r": {(7,)}}


def test_a_derived_component_adds_to_its_base() -> None:
    views = derive(
        ".comp A<T> { .decl r(x: T) .decl s(x: T) s(x) :- r(x). }\n.comp B : A<number> { r(1). s(5). }\n.init b = B"
    )
    assert views["b.s"] == {(1,), (5,)}


def test_an_override_replaces_the_rules_of_its_relation_only() -> None:
    views = derive(
        ".comp A { .decl r(x: number) overridable r(1). .decl s(x: number) s(2). }\n"
        ".comp B : A { .override r r(10). s(20). }\n.init a = A\n.init b = B"
    )
    assert (views["a.r"], views["b.r"], views["b.s"]) == ({(1,)}, {(10,)}, {(2,), (20,)})


def test_two_bases_are_both_inherited() -> None:
    views = derive(
        ".comp A { .decl a(x: number) a(1). }\n.comp B { .decl b(x: number) b(2). }\n"
        ".comp C : A, B { .decl c(x: number) c(x) :- a(x) ; b(x). }\n.init c = C"
    )
    assert views["c.c"] == {(1,), (2,)}


def test_a_component_may_be_a_parameter() -> None:
    views = derive(
        ".comp One { .decl r(x: number) r(1). }\n.comp Two { .decl r(x: number) r(2). }\n"
        ".comp Uses<C> { .init part = C .decl all(x: number) all(x) :- part.r(x). }\n"
        ".init u = Uses<One>\n.init v = Uses<Two>"
    )
    assert (views["u.all"], views["v.all"]) == ({(1,)}, {(2,)})


BOTH_WAYS = """
.comp BothWays<link> {
    .decl edge(x: number, y: number)
    edge(x, y), edge(y, x) :- link(x, y).
}
.decl edge(x: number, y: number)
edge(1, 2).
"""


def test_a_relation_may_be_a_parameter() -> None:
    assert derive(BOTH_WAYS + ".decl other(x: number, y: number) other(7, 8). .init b = BothWays<other>")["b.edge"] == {
        (7, 8),
        (8, 7),
    }


def test_an_argument_means_what_it_names_where_it_is_written() -> None:
    inside = ".comp Two<link> { .decl edge(x: number, y: number) edge(5, 6). .init a = BothWays<link> .init b = BothWays<edge> }"
    derived = ".comp Derived<link> : BothWays<link> {}"
    views = derive(
        BOTH_WAYS + inside + derived + ".init one = BothWays<edge>\n.init two = Two<edge>\n.init three = Derived<edge>"
    )
    assert views["one.edge"] == views["two.a.edge"] == views["three.edge"] == {(1, 2), (2, 1)}
    assert views["two.edge"] == {(5, 6)}
    assert views["two.b.edge"] == {(5, 6), (6, 5)}


def test_a_relation_that_does_not_fit_is_reported_where_it_is_the_argument() -> None:
    text = BOTH_WAYS + ".decl one(x: number)\none(1).\n.init b = BothWays<one>\n.init c = BothWays<nothing>"
    with pytest.raises(ProgramError) as caught:
        load(text)
    found = [(each.text, text[each.span.start : each.span.end]) for each in caught.value.diagnostics]
    assert found == [
        ("one takes 1 argument, not 2", "one"),
        ("relation nothing is not declared and no rule derives it", "nothing"),
    ]


def test_types_of_an_instance_are_prefixed() -> None:
    program = load(".comp C { .type T <: number .decl r(x: T) r(1). }\n.init c = C\n.decl s(x: c.T)\ns(x) :- c.r(x).")
    assert program.relations["s"].fields[0].type == "c.T"


def test_a_component_may_declare_the_type_that_its_parameter_names() -> None:
    text = ".comp C<T> { .type T <: number .decl r(x:T) }\n.init c = C<Size>\nc.r(1).\n.output c.r"
    assert load(text).relations["c.r"].fields[0].type == "c.Size"


def test_directives_inside_name_the_instance() -> None:
    program = load(".comp C { .decl r(x: number) r(1). .output r }\n.init c = C\n.init d = C")
    assert [transfer.relation for transfer in program.transfers] == ["c.r", "d.r"]


def _doubling(component: str) -> str:
    """Each component asks for two of the one before."""
    doubled = "".join(component.format(n=at, m=at - 1) for at in range(1, 45))
    return ".comp C0 { .decl r(x: number) r(1). }\n" + doubled + ".init z = C44"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (".init c = C", "component C is not declared"),
        (".comp C<T> { }\n.init c = C", "component C takes 1 parameter, not 0"),
        (".comp C { }\n.init c = C<number>", "component C takes no parameters, not 1"),
        (".comp C : C { }\n.init c = C", "component C inherits from itself"),
        (".comp C { .init a = C .init b = C }\n.init c = C", "components instantiate each other without end"),
        (
            _doubling(".comp C{n} {{ .init a = C{m} .init b = C{m} }}\n"),
            "the program's components make more than 200,000 statements",
        ),
        (_doubling(".comp C{n} : C{m}, C{m} {{ }}\n"), "the program's components make more than 200,000 statements"),
        (
            ".comp C { }\n.comp D : C { .override s s(1). .decl s(x: number) }\n.init d = D",
            "s is not inherited",
        ),
        (".comp C { }\n.comp C { }\n.init c = C", "component C is already defined"),
    ],
)
def test_a_mistake_is_reported_once(text: str, problem: str) -> None:
    assert errors(text) == [problem]


def test_what_an_unknown_component_would_hold_is_not_missing() -> None:
    assert errors(".init g = Graph\np(x) :- g.edge(x, _).\nq(x) :- nowhere(x).") == [
        "component Graph is not declared",
        "relation nowhere is not declared and no rule derives it",
    ]
