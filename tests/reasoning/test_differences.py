"""Differences: signed numbers and polynomials, normal forms, queries in terms of views, maintenance. Names give the vectors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any

import pytest
from tests.reasoning.queries import BASE, query

from whence.annotated import evaluate_annotated
from whence.lang.program import Const
from whence.reasoning import NotConjunctive, Query, Verdict, equivalent, query_of
from whence.reasoning.cases import linearised
from whence.reasoning.costs import Estimates, cost_of_sum, observe
from whence.reasoning.forms import added, form_of, merged, negated, same, sum_of
from whence.reasoning.maintenance import AFTER, CHANGE, maintenance
from whence.reasoning.queries import Conjunctive, holds
from whence.reasoning.rewriting import View, normal_form, reformulate, steps, unfolded
from whence.reasoning.show import rule_of, rules_of
from whence.reasoning.signed import load_signed
from whence.reasoning.transfer import to_bags, to_sets
from whence.semiring import INTEGER_POLYNOMIALS, SEMIRINGS, Integer, NotInThisSemiring

Rows = Mapping[tuple[Any, ...], Any]
R2 = "Q(x, y) :- R(x, z), R(z, y)."
R3 = "Q(x, y) :- R(x, z), R(z, w), R(w, y)."
R1 = "Q(x, y) :- R(x, y)."
SIZES = {"R": 1000, "V": 5000, "R.change": 10, "R.after": 1000}
PLAIN = Estimates({name: observe([(x, x) for x in range(number)], 2) for name, number in SIZES.items()})


def signed(*rules: str, more: str = "") -> Query:
    arity = rules[0].split(")")[0].count(",") + 1
    columns = ", ".join(f"c{at}:number" for at in range(arity))
    program, minus = load_signed(f"{BASE}.decl Q({columns})\n.output Q\n{more}\n" + "\n".join(rules))
    return query_of(program, "Q", minus=minus)


def value_of(sum_: Mapping[Conjunctive, int], facts: Mapping[str, Rows], semiring: Any) -> Rows:
    """Rows met one after the other, multiplied, added up, or taken away."""
    total: dict[tuple[Any, ...], Any] = {}
    for part, number in sum_.items():
        met: list[tuple[dict[Any, Any], Any]] = [({}, semiring.one)]
        for name, args in part.atoms:
            met = [
                (extended, semiring.times(value, other))
                for binding, value in met
                for row, other in facts[name].items()
                if (extended := extend(binding, args, row)) is not None
            ]
        for binding, value in met:
            put = lambda term, binding=binding: term.value if isinstance(term, Const) else binding[term]  # noqa: E731
            if all(holds(op, put(left), put(right)) for op, left, right in part.comparisons):
                head = tuple(map(put, part.head))
                for _ in range(abs(number)):
                    combine = semiring.plus if number > 0 else semiring.minus
                    total[head] = combine(total.get(head, semiring.zero), value)
    return {row: value for row, value in total.items() if value != semiring.zero}


def extend(binding: dict[Any, Any], args: tuple[Any, ...], row: tuple[Any, ...]) -> dict[Any, Any] | None:
    extended = dict(binding)
    for arg, value in zip(args, row, strict=True):
        if (arg.value if isinstance(arg, Const) else extended.setdefault(arg, value)) != value:
            return None
    return extended


def plus(*tables: Rows) -> Rows:
    total: dict[tuple[Any, ...], Any] = {}
    for rows in tables:
        for row, number in rows.items():
            total[row] = total.get(row, 0) + number
    return {row: number for row, number in total.items() if number}


def sums(*rules: str) -> dict[Conjunctive, int]:
    return sum_of(query(*rules).parts)


def view(*rules: str, name: str = "V") -> View:
    return View(name, query(*rules).parts)


def cheapest(wanted: Mapping[Conjunctive, int], views: Iterable[View], **sizes: int) -> set[str]:
    """The rules found if relations have so many rows, each value of a column in five of them."""
    known = Estimates(
        {name: observe([(x // 5, x % (number // 5)) for x in range(number)], 2) for name, number in sizes.items()}
    )
    return set(rules_of(reformulate(wanted, list(views), known, most_steps=30, seconds=60).sum, "Q"))


LETTERS = {letter: number for number, letter in enumerate("abcdef")}


def table(text: str) -> Rows:
    """`ab:2 bc:1` as rows with numbers."""
    return {
        tuple(LETTERS[each] for each in pair): int(number)
        for pair, number in (item.split(":") for item in text.split())
    }


FIGURE = table("ab:2 bc:1 ad:1 dc:1 de:3")
FIGURE_CHANGE = table("ab:-2 bc:-1 ef:1")


def test_a_redundant_join_shows_in_some_semirings_tv_1_13() -> None:
    one, other = query("Q(x, y) :- R(x, y), R(x, z)."), query("Q(x, y) :- R(x, y).")
    assert equivalent(one, other, "boolean").verdict is Verdict.YES
    for name in ("natural", "boolean-polynomial", "polynomial", "integer"):
        assert equivalent(one, other, name).verdict is Verdict.NO


def test_rules_for_a_change_tv_1_14_tv_5_4_tv_5_5() -> None:
    found = maintenance(view(R2), ["R"], PLAIN)
    rules = {rule_of(form_of(part), "Q") for part in found.sum}
    ours = {"Q(x, y) :- R(x, z), R.change(z, y).", "Q(x, y) :- R.change(x, z), R.after(z, y)."}
    turned = {"Q(x, y) :- R.change(x, z), R(z, y).", "Q(x, y) :- R.after(x, z), R.change(z, y)."}
    assert rules in ({*map(canonical, ours)}, {*map(canonical, turned)})
    assert set(found.sum.values()) == {1}


def canonical(rule: str) -> str:
    """The rule as forms have it."""
    text = rule.replace(CHANGE, "_change").replace(AFTER, "_after")
    more = "".join(f".decl {each}(x:number, y:number)\n.input {each}\n" for each in ("R_change", "R_after"))
    program, _ = load_signed(f"{BASE}{more}.decl Q(x:number, y:number)\n.output Q\n{text}")
    shown = rule_of(form_of(query_of(program, "Q").parts[0]), "Q")
    return shown.replace("_change", CHANGE).replace("_after", AFTER)


def test_signed_rows_tv_1_15() -> None:
    after = plus(FIGURE, FIGURE_CHANGE)
    assert after == table("ad:1 dc:1 de:3 ef:1")
    facts = {"R": FIGURE, "R.change": FIGURE_CHANGE, "R.after": after}
    before, wanted = (value_of(sums(R2), {"R": rows}, Integer()) for rows in (FIGURE, after))
    assert before == table("ac:3 ae:3")
    assert wanted == table("ac:1 ae:3 df:3")
    change = maintenance(view(R2), ["R"], PLAIN).sum
    assert value_of(change, facts, Integer()) == table("ac:-2 df:3")
    # Without the product of both changes it would be wrong (TV-5.4).
    naive = [replace_name(part, "R.after", "R") for part in change]
    assert value_of(sum_of(naive), facts, Integer())[0, 2] == -4


def replace_name(part: Conjunctive, old: str, new: str) -> Conjunctive:
    atoms = tuple((new if name == old else name, args) for name, args in part.atoms)
    return Conjunctive(part.rule, part.head, atoms, part.comparisons, part.sign)


def test_a_view_adapted_with_provenance_tv_1_16() -> None:
    old, new = sums(R3, R2), sums(R3, R1)
    change = added(new, negated(old))
    assert set(rules_of(change, "Q")) == {"Q(x, y) :- R(x, y).", "-Q(x, y) :- R(x, z), R(z, y)."}
    semiring = INTEGER_POLYNOMIALS
    p, q, r, s = (semiring.variable(each) for each in "pqrs")
    facts = {"R": {(0, 1): p, (1, 2): q, (0, 2): r, (2, 3): s}}
    before, difference, after = (value_of(each, facts, semiring) for each in (old, change, new))
    times, minus = semiring.times, semiring.minus
    assert before == {
        (0, 2): times(p, q),
        (1, 3): times(q, s),
        (0, 3): semiring.plus(times(r, s), times(times(p, q), s)),
    }
    assert difference == {
        (0, 1): p,
        (1, 2): q,
        (2, 3): s,
        (0, 2): minus(r, times(p, q)),
        (1, 3): minus(semiring.zero, times(q, s)),
        (0, 3): minus(semiring.zero, times(r, s)),
    }
    assert after == {(0, 1): p, (1, 2): q, (2, 3): s, (0, 2): r, (0, 3): times(times(p, q), s)}


def test_a_view_less_what_is_too_much_tv_5_1() -> None:
    found = cheapest(sums(R3), [view(R2, R3)], R=1000, V=50)
    assert found == {"Q(x, y) :- V(x, y).", "-Q(x, y) :- R(x, z), R(z, y)."}


def test_a_view_loses_a_rule_and_a_column_tv_5_2() -> None:
    rules = [
        "Q(x, y, z) :- R(x, y), R(x, z).",
        "Q(x, y, z) :- R(x, y), R(y, z).",
        "Q(x, y, z) :- R(x, y), R(y, z), y = z.",
    ]
    wanted = query("Q(x, z) :- R(x, y), R(x, z).", "Q(x, z) :- R(x, y), R(y, z), y = z.")
    known = Estimates(
        {"R": observe([(x // 5, x % 200) for x in range(1000)], 2), "V": observe([(x, x, x) for x in range(60)], 3)}
    )
    found = reformulate(sum_of(wanted.parts), [view(*rules)], known, seconds=60, most_steps=30)
    # The first rule is the same for both of its last columns, so either can go.
    assert set(rules_of(found.sum, "Q")) in (
        {"Q(x, y) :- V(x, z, y).", "-Q(x, y) :- R(x, z), R(z, y)."},
        {"Q(x, y) :- V(x, y, z).", "-Q(x, y) :- R(x, y), R(y, z)."},
    )
    assert unfolded(found.sum, {"V": view(*rules)}) == sum_of(wanted.parts)


def test_maintained_by_the_rules_found_tv_5_3() -> None:
    rows = table("ab:1 cb:1 bc:1 ba:1")
    current = value_of(sums(R2), {"R": rows}, Integer())
    assert current == table("aa:1 ac:1 bb:2 cc:1 ca:1")
    rules = maintenance(view(R2), ["R"], PLAIN).sum
    for change, expected, result in [
        ("ba:-1 cd:1", "aa:-1 ca:-1 bb:-1 bd:1", "ac:1 bb:1 cc:1 bd:1"),
        ("cb:-1", "bb:-1 cc:-1", "ac:1 bd:1"),
    ]:
        after = plus(rows, table(change))
        found = value_of(rules, {"R": rows, "R.change": table(change), "R.after": after}, Integer())
        assert found == table(expected)
        current, rows = plus(current, found), after
        assert current == table(result)


def test_rules_with_a_minus_tv_5_6() -> None:
    more = ".decl U(x:number, y:number)\n.input U"
    asked = signed(
        "Q(x, z) :- R(x, y), U(y, z).",
        "Q(x, y) :- R(x, y), R(y, x), R(x, x).",
        "-Q(x, y) :- R(x, y), U(y, y).",
        more=more,
    )
    assert [part.sign for part in asked.parts] == [1, 1, -1]
    facts = {"R": table("ab:2 ba:1 aa:3"), "U": table("bb:5 bc:1")}
    found = evaluate_annotated(
        asked.program,
        {name: list(rows) for name, rows in facts.items()},
        Integer(),
        lambda name, row: facts[name][row],
        rules=dict.fromkeys(asked.minus, -1),
    )["Q"]
    assert found == value_of(sum_of(asked.parts), facts, Integer()) == table("ac:2 ab:6 aa:27")


def test_one_atom_written_out_tv_5_7() -> None:
    more = ".decl W(x:number, y:number)\nW(x, y) :- R(x, z), R(z, y).\nW(x, y) :- R(x, z), R(z, w), R(w, y)."
    twice = signed("Q(x, y) :- W(x, z), W(z, y).", more=more)
    lengths = sorted(len(part.atoms) for part in twice.parts)
    assert lengths == [4, 5, 5, 6]
    whole = unfolded(sum_of(query("Q(x, y) :- R(x, z), R(z, y).").parts), {})
    assert whole == sums(R2)
    half = {form_of(replace_name(query(R2).parts[0], "R", "V")): 1}
    assert unfolded(half, {"V": view(R2, R3)}) == sum_of(twice.parts)


def power(length: int) -> str:
    names = ["x", *(f"v{at}" for at in range(1, length)), "y"]
    return f"Q(x, y) :- {', '.join(f'R({a}, {b})' for a, b in pairwise(names))}."


def test_ever_longer_ways_to_say_the_same_tv_5_8() -> None:
    """Q = R², V = R + R³: folding goes on for ever, and each step is right."""
    facts = {"R": FIGURE | table("cc:2 ea:1"), "V": {}}
    facts["V"] = value_of(sums(R1, R3), {"R": facts["R"]}, Integer())
    wanted = value_of(sums(R2), {"R": facts["R"]}, Integer())
    current = sums(R2)
    for number in range(3):
        options = list(steps(current, [view(R1, R3)]))
        assert options
        assert all(value_of(each, facts, Integer()) == wanted for each in options[:6])
        current = next(each for each in options if sum_of(query(power(2 * number + 4)).parts).keys() & each.keys())
        assert unfolded(current, {"V": view(R1, R3)}) == sums(R2)


def test_where_sets_and_bags_differ_tv_5_9() -> None:
    twice_less_once = signed("Q(x, y) :- R(x, y).", "Q(x, y) :- R(x, y).", "-Q(x, y) :- R(x, y).")
    assert equivalent(twice_less_once, query(R1), "integer").verdict is Verdict.YES
    assert to_bags(twice_less_once).holds
    assert not to_sets(twice_less_once, sums(R1)).holds
    with pytest.raises(NotInThisSemiring, match="integer"):
        equivalent(twice_less_once, query(R1), "boolean")
    negative = signed("Q(x, y) :- R(x, y).", "-Q(x, y) :- R(x, y).", "-Q(x, y) :- R(x, y).")
    assert not to_bags(negative).holds


def test_an_order_for_every_case_tv_5_10() -> None:
    asked = query("Q(x, y) :- R(x, y), R(y, z), x < y, x <= z.")
    kind = asked.signature[0]
    orders = list(linearised(asked.parts[0], {}, frozenset((kind,)), frozenset((kind,))))
    shown = {rule_of(each, "Q") for each in orders}
    assert shown == {
        "Q(x, y) :- R(x, y), R(y, x), x < y.",
        "Q(x, y) :- R(x, y), R(y, y), x < y.",
        "Q(x, y) :- R(x, y), R(y, z), x < y, y < z.",
        "Q(x, y) :- R(x, y), R(y, z), x < z, z < y.",
    }


class Exact:
    """Cardinalities by evaluation."""

    def __init__(self, facts: Mapping[str, Rows]) -> None:
        self.facts = facts

    def rows(self, relation: str) -> float:
        return len(self.facts[relation])

    def joined(self, part: Conjunctive, atoms: Iterable[int]) -> float:
        chosen = tuple(part.atoms[at] for at in atoms)
        variables = tuple(dict.fromkeys(each for _, args in chosen for each in args))
        return len(value_of({Conjunctive("", variables, chosen): 1}, self.facts, SEMIRINGS["boolean"]))  # type: ignore[arg-type]


def test_what_the_figure_costs_tv_5_11() -> None:
    after = plus(FIGURE, FIGURE_CHANGE)
    one = dict.fromkeys
    facts = {
        "R": one(FIGURE, True),
        "R.change": one(FIGURE_CHANGE, True),
        "R.after": one(after, True),
        "V": one(value_of(sums(R2), {"R": FIGURE}, Integer()), True),
    }
    known = Exact(facts)
    anew = {form_of(replace_name(query(R2).parts[0], "R", "R.after")): 1}
    assert cost_of_sum(anew, known) == 11
    kept = {form_of(Conjunctive("", query(R1).parts[0].head, (("V", query(R1).parts[0].head),))): 1}
    by_rules = added(kept, maintenance(view(R2), ["R"], PLAIN).sum)
    assert cost_of_sum(by_rules, known) == 19


# -- beyond the vectors


def test_identities_of_differences() -> None:
    a, b, c = R1, "Q(x, y) :- R(y, x).", "Q(x, y) :- R(x, y), R(y, y)."
    nested = signed(a, "-Q(x, y) :- W(x, y).", more=".decl W(x:number, y:number)\n" + w(b) + w(c, "-"))
    flat = signed(a, c, f"-{b}")
    assert equivalent(nested, flat, "integer").verdict is Verdict.YES
    assert equivalent(nested, flat, "integer-polynomial").verdict is Verdict.YES
    assert normal_form(nested.parts) == normal_form(flat.parts)
    answer = equivalent(nested, query(a), "integer")
    assert answer.verdict is Verdict.NO
    assert answer.counterexample is not None
    assert answer.counterexample.left != answer.counterexample.right


def w(rule: str, sign: str = "") -> str:
    return sign + rule.replace("Q(", "W(", 1) + "\n"


def test_a_comparison_and_its_opposite_make_a_whole() -> None:
    assert merged(sums("Q(x) :- R(x, y), x < y.", "Q(x) :- R(x, y), y <= x.")) == sums("Q(x) :- R(x, y).")
    less = added(sums("Q(x) :- R(x, y)."), negated(sums("Q(x) :- R(x, y), x != y.")))
    assert merged(less) == sums("Q(x) :- R(x, x).")
    never = added(sums("Q(x) :- R(x, y), x < y, y <= x."), negated(sums("Q(x) :- R(x, y), x < y.")))
    assert merged(never) == negated(sums("Q(x) :- R(x, y), x < y."))
    assert same(query("Q(x) :- S(x), 1 < x, x < 3.").parts, query("Q(x) :- S(x), x = 2.").parts)


def test_transfers_to_sets() -> None:
    positive = query(R3)
    assert to_sets(positive, sums(R3)).holds
    assert "numbers of derivations" in to_sets(positive, added(sums(R2), negated(sums(R3)))).reason
    difference = signed("Q(x) :- S(x).", "-Q(x) :- T(x).")
    assert not to_sets(difference, {}).holds
    assert to_sets(difference, {}, {"S": {(1,), (2,)}, "T": {(2,)}}).holds
    assert "T is not contained in S" in to_sets(difference, {}, {"S": {(1,)}, "T": {(2,)}}).reason


def test_a_minus_belongs_before_a_rule() -> None:
    with pytest.raises(NotConjunctive, match="a fact cannot be taken away"):
        load_signed(".decl q(x:number)\nq(2).\n-q(1).")


def test_a_view_that_hides_a_variable_is_not_used_where_it_is_needed() -> None:
    hiding = View("V", query("Q(x) :- R(x, z).").parts)
    assert not list(steps(sums("Q(x, z) :- R(x, z)."), [hiding]))
    assert not list(steps(sums("Q(x) :- R(x, z), S(z)."), [hiding]))
    assert list(steps(sums("Q(x) :- R(x, z), S(x)."), [hiding]))
