"""Queries and databases for tests, and an evaluator that tries every valuation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import reduce
from itertools import product
from typing import Any

from hypothesis import strategies as st

from whence.lang import load
from whence.lang.program import Const
from whence.reasoning import Query, query_of
from whence.reasoning.cases import Fact
from whence.reasoning.queries import holds
from whence.semiring import SEMIRINGS, Semiring

IDEMPOTENT = ("boolean", "posbool", "fuzzy", "access", "lineage", "why", "boolean-polynomial", "tropical", "viterbi")
DECIDED = (*IDEMPOTENT, "trio", "polynomial")
SOMETIMES = ("natural", "counting")
BASE = ".decl R(x:number, y:number)\n.input R\n.decl S(x:number)\n.input S\n.decl T(x:number)\n.input T\n"


def query(*rules: str) -> Query:
    """Rules for Q, over R/2, S/1 and T/1."""
    arity = rules[0].split(":-", maxsplit=1)[0].count(",") + 1 if "(" in rules[0].split(":-", maxsplit=1)[0] else 0
    arity = 0 if rules[0].startswith("Q()") else arity
    columns = ", ".join(f"c{at}:number" for at in range(arity))
    return query_of(load(f"{BASE}.decl Q({columns})\n.output Q\n" + "\n".join(rules)), "Q")


def brute_force(asked: Query, facts: Mapping[Fact, Any], semiring: Semiring[Any]) -> dict[tuple[Any, ...], Any]:
    """Every valuation over the values that occur, summed up."""
    values = sorted({value for _, row in facts for value in row})
    answers: dict[tuple[Any, ...], Any] = {}
    for part in asked.parts:
        variables = part.variables
        for chosen in product(values, repeat=len(variables)):
            valuation = dict(zip(variables, chosen, strict=True))

            def value(term: Any, valuation: Any = valuation) -> Any:
                return term.value if isinstance(term, Const) else valuation[term]

            if not all(holds(op, value(left), value(right)) for op, left, right in part.comparisons):
                continue
            met = (facts.get((name, tuple(map(value, args))), semiring.zero) for name, args in part.atoms)
            term = reduce(semiring.times, met, semiring.one)
            head = tuple(map(value, part.head))
            answers[head] = semiring.plus(answers.get(head, semiring.zero), term)
    return answers


def refuted(left: Query, right: Query, facts: Mapping[Fact, Any], name: str, *, both_ways: bool) -> bool:
    semiring = SEMIRINGS[name]
    one, other = (brute_force(each, facts, semiring) for each in (left, right))
    for row in {*one, *other}:
        a, b = one.get(row, semiring.zero), other.get(row, semiring.zero)
        if a != b if both_ways else not semiring.leq(a, b):
            return True
    return False


def databases(name: str, draw_from: int) -> Iterator[dict[Fact, Any]]:
    """Databases over three values with annotations of several kinds; which, follows from the number."""
    semiring = SEMIRINGS[name]
    every: list[Fact] = [("R", (x, y)) for x in range(3) for y in range(3)] + [("S", (x,)) for x in range(3)]
    state = draw_from
    for _ in range(12):
        facts = {}
        for at, fact in enumerate(every):
            state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
            number = state >> 40
            if number % 3 == 0:
                facts[fact] = annotation(semiring, at, number // 3)
        yield facts


def annotation(semiring: Semiring[Any], at: int, number: int) -> Any:
    match semiring.name:
        case "natural" | "counting" | "integer":
            return 1 + number % 3
        case "tropical":
            return number % 4
        case "viterbi":
            return 0.5 ** (number % 4)
        case "fuzzy":
            return (1 + number % 4) / 4
        case "access":
            return ("public", "confidential", "secret")[number % 3]
        case "boolean":
            return True
    variables = [semiring.variable(f"{at}.{each}") for each in range(1 + number % 2)]
    return reduce(semiring.plus, variables)


@st.composite
def rules(draw: st.DrawFn, *, comparisons: bool = False, most_atoms: int = 3) -> str:
    """A rule for Q/1."""
    terms = st.sampled_from(["x", "y", "z", "x", "y", "1"] if comparisons else ["x", "y", "z"])
    atom = st.one_of(
        st.tuples(terms, terms).map(lambda each: f"R({each[0]}, {each[1]})"), terms.map(lambda term: f"S({term})")
    )
    body = draw(st.lists(atom, min_size=1, max_size=most_atoms))
    there = sorted(set("".join(body)) & set("xyz"))
    if not there:
        body, there = [*body, "S(x)"], ["x"]
    if comparisons:
        operator = st.sampled_from(["<", "<=", "!=", ">"])
        either = st.sampled_from([*there, "1", "2"])
        chosen = draw(st.lists(st.tuples(st.sampled_from(there), operator, either), max_size=2))
        body += [f"{left} {op} {right}" for left, op, right in chosen]
    return f"Q({draw(st.sampled_from(there))}) :- {', '.join(body)}."


def unions(*, comparisons: bool = False, most_rules: int = 2) -> st.SearchStrategy[Query]:
    return st.lists(rules(comparisons=comparisons), min_size=1, max_size=most_rules).map(lambda each: query(*each))
