from collections.abc import Callable

from whence import load
from whence.lang.program import Program
from whence.plan import Plan, compile_evaluation, compile_plan, compile_recomputation
from whence.plan.describe import describe_plan

TEXT = """.decl link(x:number, y:number)
.input link
reach(x, y) :- link(x, y).
reach(x, z) :- reach(x, y), link(y, z).
busy(x, n) :- link(x, _), n = count : { reach(x, _) }, n > 1.
dead(y) :- link(_, y), !link(y, _).
.output busy, dead
"""
# ruff: noqa: E501 - a plan as it is printed
PLAN = """stratum 1: link, from outside

stratum 2: link!0, by counting derivations
  rule link!0#1 (<program>:6)
    when link changes: ($0 = column 0)
      -> link!0($0)

stratum 3: reach, recursive, by support counting with ranks
  in parts by reach.x, because
    rule reach#2 carries x from reach.x to reach.x
    every part needs all of link
  rule reach#1 (<program>:3)
    when link changes: ($0 = column 0, $1 = column 1)
      -> reach($0, $1)
  rule reach#2 (<program>:4)
    when reach changes: ($0 = column 0, $1 = column 1)
      join link by index on column 0 = $1 ($2 = column 1)
      -> reach($0, $2)
    when link changes: ($0 = column 0, $1 = column 1)
      join reach by index on column 1 = $0 ($2 = column 0)
      -> reach($2, $1)

stratum 4: busy#1!0:context, by counting derivations
  rule busy#1!0:context#1 (<program>:5)
    when link changes: ($0 = column 0)
      -> busy#1!0:context($0)

stratum 5: busy#1!0:rows, by counting derivations
  rule busy#1!0:rows#1 (<program>:5)
    when busy#1!0:context changes: ($0 = column 0)
      join reach by index on column 0 = $0 ($1 = column 1)
      -> busy#1!0:rows($0, $1)
    when reach changes: ($0 = column 0, $1 = column 1)
      if busy#1!0:context($0)
      -> busy#1!0:rows($0, $1)

stratum 6: busy#1!0:groups, the count of busy#1!0:rows: a group for each row of busy#1!0:context, aggregated again when its rows change

stratum 7: busy, by counting derivations
  rule busy#1 (<program>:5)
    when busy#1!0:groups changes: ($0 = column 0, $1 = column 1)
      if $1 > 1
      -> busy($0, $1)

stratum 8: dead, by counting derivations
  rule dead#1 (<program>:6)
    when link changes: ($0 = column 1)
      unless link!0($0)
      -> dead($0)
    when !link!0 changes: ($0 = column 0)
      join link by index on column 1 = $0 ()
      -> dead($0)
"""


def described(text: str, compiled: Callable[[Program], Plan] = compile_plan) -> str:
    program = load(text)
    return describe_plan(compiled(program), compile_evaluation(program))


def test_a_plan_names_what_it_joins_tests_and_derives() -> None:
    assert described(TEXT) == PLAN


def test_a_stratum_that_is_evaluated_anew_says_why() -> None:
    text = ".decl e(x:number, y:number) eqrel\n.decl f(x:number, y:number)\n.input f\n.output e\ne(x, y) :- f(x, y).\n"
    assert "stratum 2: e, evaluated anew when f changes\n  because: e is an eqrel\n" in described(text)


def test_recomputation_can_be_asked_for() -> None:
    expected = "stratum 2: reach, evaluated anew when link changes\n  because: recomputation was asked for"
    assert expected in described(TEXT, compile_recomputation)
