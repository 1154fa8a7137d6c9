"""Questions about records, branches, quotes, aggregates and SQL; questions that are wrong, and those that would take forever."""

from __future__ import annotations

import gc
import json
import time
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from whence.cli import app
from whence.cli.questions import time_limit

PROGRAM = """\
.type Pair = [a: number, b: symbol]
.type Shape = circle {r: float} | box {w: number, p: Pair} | none {}
.decl e(x: symbol, y: symbol, w: number)
.decl off(x: symbol)
.decl sh(n: number, s: Shape)
e("a", "b", 1). e("b", "c", 2). e("c", "a", 3). e("b \\"q\\"", "d", 4). off("c").
sh(1, $circle(1.5)). sh(2, $box(7, [3, "it's"])). sh(3, $none).
start: dist(x, x, 0) :- e(x, _, _).
step: dist(x, y, d) :- d = min c + w : { dist(x, z, c), e(z, y, w) }, e(_, y, _), e(x, _, _).
up: up(x) :- e(x, _, _), !off(x).
deg: deg(x, n) :- e(x, _, _), n = count : { e(x, _, _) }.
big: big(n, $box(n, [n, "q"])) :- sh(n, $circle(_)).
pair: pair(p) :- sh(_, $box(_, p)).
.output dist, up, deg, big, pair
"""
SQL = """\
CREATE TABLE link(src TEXT NOT NULL, dst TEXT NOT NULL, ms INT NOT NULL);
CREATE VIEW best(src, dst, ms) AS SELECT DISTINCT src, dst, MIN(ms) FROM link GROUP BY src, dst;
CREATE VIEW first(src) AS SELECT src FROM link WHERE NOT EXISTS (SELECT 1 FROM link AS o WHERE o.dst = link.src);
"""


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("odd.dl").write_text(PROGRAM)
    Path("p.sql").write_text(SQL)
    Path("link.facts").write_text("a\tb\t5\na\tb\t3\nb\tc\t1\n")


def ask(command: str, *args: str, program: str = "odd.dl") -> tuple[int, str]:
    """The exit code; and what is printed, then what is said beside it."""
    result = CliRunner().invoke(app, [command, program, *args])
    return result.exit_code, result.stdout + result.stderr


def flat(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize(
    ("fact", "first"),
    [
        ('dist("a", "c", 3)', 'dist("a", "c", 3)  by step'),
        ("dist('a', 'c', 3)", 'dist("a", "c", 3)  by step'),
        ("dist(a, c, 3).", 'dist("a", "c", 3)  by step'),
        ('up("b \\"q\\"")', 'up("b \\"q\\"")  by up'),
        ("up('b \"q\"')", 'up("b \\"q\\"")  by up'),
        ('pair([3, "it\'s"])', 'pair([3, "it\'s"])  by pair'),
        ("pair([3, it's])", 'pair([3, "it\'s"])  by pair'),
        ('big(1, $box(1, [1, "q"]))', 'big(1, $box(1, [1, "q"]))  by big'),
        ('e("a", "b", 1)', 'e("a", "b", 1)  base'),
    ],
)
def test_facts_are_written_as_in_the_program_or_nearly_so(fact: str, first: str) -> None:
    code, text = ask("why", fact)
    assert (code, text.splitlines()[0]) == (0, first)


@pytest.mark.parametrize(
    ("fact", "problem"),
    [
        ('dist("a", "c")', "expected ',' and c3: number at character 10, found ')'"),
        ('dst("a", "c", 3)', "there is no relation dst hint: did you mean dist?"),
        ('dist("a", "c", "3")', "is not a number"),
        ('dist("a", "c"', "is not a fact hint: write it as in the program"),
        ("big(1, $cube(1))", "it has no branch $cube"),
    ],
)
def test_wrong_facts_are_explained(fact: str, problem: str) -> None:
    for command in ("why", "whynot", "how", "probability", "responsibility"):
        code, text = ask(command, fact)
        assert (code, problem in flat(text)) == (2, True), text


def test_patterns_stand_for_the_facts_that_fit() -> None:
    code, text = ask("why", 'dist("a", _, _)')
    assert code == 0
    assert [line for line in text.splitlines() if line.startswith("dist")] == [
        'dist("a", "a", 0)  by start',
        'dist("a", "a", 6)  by step',
        'dist("a", "b", 1)  by step',
    ]
    assert '1 more fit dist("a", _, _)' in flat(text)
    assert ask("how", 'dist("a", "c", _)')[0] == 0
    code, text = ask("how", 'dist("a", _, _)')
    assert code == 0
    assert '1 more fit dist("a", _, _)' in flat(text)
    assert 'dist("a", "b", 1)' in text
    code, text = ask("why", 'dist("a", _, _)', "--all")
    assert (code, "facts fit" in text) == (1, True)
    assert ask("why", 'dist("nowhere", _, _)') == (1, 'error: no fact fits dist("nowhere", _, _)\n')
    code, text = ask("whynot", 'dist("a", _, 3)')
    assert code == 0
    assert 'dist("a", "c", 3) does not hold' in text or 'dist("a", "b", 3) does not hold' in text
    code, text = ask("whatif", "-i", "off(_)")
    assert (code, "_ stands for any value, and this question is about one fact" in flat(text)) == (2, True)
    code, text = ask("why", 'dist("a", _)')
    assert (code, "it has 2 values" in flat(text)) == (2, True)


def test_absent_facts_are_referred_to_whynot_and_present_ones_to_why() -> None:
    for command in ("why", "how", "probability", "responsibility"):
        assert ask(command, 'up("c")') == (1, 'error: up("c") does not hold; `whence whynot` says what is missing\n')
    assert ask("whynot", 'up("a")') == (1, 'error: up("a") holds; `whence why` shows the proof\n')


def test_json_has_values_as_records_have_them() -> None:
    def answer(*args: str) -> dict[str, Any]:
        return json.loads(CliRunner().invoke(app, [args[0], "odd.dl", *args[1:], "--json"]).stdout)  # type: ignore[no-any-return]

    proof = answer("why", 'big(1, $box(1, [1, "q"]))')["proofs"][0]
    assert [step["tuple"] for step in proof["steps"]] == [[1, "$circle(1.5)"], [1, '$box(1, [1, "q"])']]
    changes = answer("whatif", "-e", 'sh(2, $box(7, [3, "it\'s"]))')["changes"]
    assert [(each["op"], each["tuple"]) for each in changes] == [("-", [[3, "it's"]])]
    for command in ("how", "probability"):
        assert answer(command, 'pair([3, "it\'s"])')["tuple"] == [[3, "it's"]]
    graph = answer("why", 'deg("a", 1)', "--all")
    assert graph["derivations"][0]["aggregates"][0]["value"] == 1


def test_whynot_says_what_does_not_fit() -> None:
    lines = ask("whynot", 'dist("a", "c", 4)', "-k", "0")[1].splitlines()
    assert "    false       the fact fits dist(x, x, 0)" in lines
    assert "    false       d = min c + w : { dist(x, z, c), e(z, y, w) } (it is 3)" in lines


def test_whynot_looks_into_records_and_branches() -> None:
    lines = ask("whynot", 'pair([1, "z"])')[1].splitlines()
    assert '    missing     sh(_, $box(_, [1, "z"]))' in lines
    assert 'it would hold with  + sh(1, $box(7, [1, "z"]))' in lines
    lines = ask("whynot", 'big(3, $box(3, [3, "q"]))')[1].splitlines()
    assert lines[2:4] == ["    missing     sh(3, $circle(_))", "it would hold with  + sh(3, $circle(1.5))"]


def test_refusals_say_what_to_do() -> None:
    code, text = ask("responsibility", 'up("a")')
    assert (code, "take off for granted, and ask for contributions among e only (--among)" in text) == (1, True)
    code, text = ask("responsibility", 'deg("a", 1)')
    assert (code, "shares cannot be worked out" in text) == (1, True)
    code, text = ask("probability", 'up("a")', "-p", "off=0.5")
    assert (code, "the facts of off would have to be certain" in text) == (1, True)
    code, text = ask("how", 'up("a")', "--semiring", "magic")
    assert (code, "error: --semiring: there is no semiring magic" in flat(text)) == (2, True)


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ("e=90%", "90% is not a probability, a number between 0 and 1"),
        ("e=1.5", "1.5 is not a probability"),
        ("e=nan", "nan is not a probability"),
        ("of=0.5", "there is no relation of hint: did you mean off?"),
        ("up=0.5", "up is derived by rules, and values are given to base facts: those of e, off, sh"),
        ('up("a")=0.5', "up is derived by rules"),
        ('e("a", "b", 2)=0.5', 'e("a", "b", 2) is not among the base facts'),
    ],
)
def test_probabilities_that_would_count_for_nothing_are_refused(given: str, problem: str) -> None:
    code, text = ask("probability", 'up("a")', "-p", given)
    assert (code, f"error: -p: {problem}" in flat(text)) == (2, True)


def test_a_fact_that_the_program_states_of_a_derived_relation_may_be_uncertain() -> None:
    Path("stated.dl").write_text('.decl e(x:symbol) .input e\np("a"). p(x) :- e(x).\n.output p\n')
    Path("e.facts").write_text("b\n")
    assert ask("probability", 'p("a")', "-p", 'p("a")=0.25', program="stated.dl") == (0, 'p("a")  0.25\n')


def test_whynot_points_at_texts_that_no_fact_has() -> None:
    assert ask("whynot", 'up("b \\"p\\"")')[1].endswith(
        'warning: "b \\"p\\"" is in no fact; did you mean "b \\"q\\""?\n'
    )
    assert "is in no fact" not in ask("whynot", 'up("d")')[1]


def test_whatif_refuses_options_that_do_not_go_together() -> None:
    code, text = ask("whatif", "--rank", "-i", 'off("c")')
    assert (code, "hint: leave -i out" in flat(text)) == (2, True)
    code, text = ask("whatif", "-n", "3", "-e", 'off("c")')
    assert (code, "error: -n: it is for --rank" in flat(text)) == (2, True)


def test_sql_is_shown_as_it_was_written() -> None:
    code, text = ask("why", "best('a', 'b', 3)", program="p.sql")
    assert code == 0
    assert "best#1  p.sql:2  SELECT DISTINCT src, dst, MIN(ms) FROM link GROUP BY src, dst" in text.splitlines()
    text = ask("why", "first('a')", program="p.sql")[1]
    assert "NOT EXISTS (SELECT 1 FROM link AS o WHERE o.dst = link.src)\n" in text
    lines = ask("whynot", "best('a', 'b', 4)", program="p.sql")[1].splitlines()
    assert "    false       MIN(ms) (it is 3)" in lines
    assert (
        "    false       MIN(ms) (there is none)" in ask("whynot", "best('c', 'b', 4)", program="p.sql")[1].splitlines()
    )


# -- a fact with more derivations than anybody can list

DENSE = """\
.decl some(x: number, y: number)
.input some
reach(x, y) :- some(x, y).
reach(x, z) :- reach(x, y), some(y, z).
.output reach
"""


@pytest.fixture
def dense() -> str:
    Path("dense.dl").write_text(DENSE)
    rows = sorted({(x, (x * 7 + d) % 40) for x in range(40) for d in range(1, 6)})
    Path("some.facts").write_text("".join(f"{x}\t{y}\n" for x, y in rows))
    return "dense.dl"


def test_values_that_take_too_long_are_left_out(dense: str) -> None:
    names = ["--semiring", "lineage", "--semiring", "posbool"]
    code, text = ask("how", "reach(0, 0)", "--timeout", "2.5", *names, program=dense)
    assert code == 3
    lines = dict(line.split(maxsplit=1) for line in text.splitlines() if line.startswith("  "))
    assert lines["lineage"].count("some(") == 200
    assert lines["posbool"].startswith("not found in 2.5 seconds; raise --timeout, or ask for lineage")
    code, text = ask("how", "reach(0, 0)", "--timeout", "2.5", *names[2:], "--json", program=dense)
    assert (code, '"posbool": null' in text) == (3, True)


def test_shares_are_estimated_in_the_time_there_is(dense: str) -> None:
    code, text = ask("responsibility", "reach(0, 0)", "--nodes", "10", "--timeout", "0.3", program=dense)
    assert code == 0
    assert "shares are estimated: --samples and --timeout make the error smaller" in text


def test_probability_has_bounds_and_says_so(dense: str) -> None:
    code, text = ask("probability", "reach(0, 0)", "-p", "some=0.5", "--nodes", "10", "--timeout", "0.1", program=dense)
    assert code == 0
    assert "(bounds; raise --nodes or --timeout for less between them)" in text


def test_a_fact_that_lost_is_not_called_underivable() -> None:
    Path("c.dl").write_text(
        "e(1, 2). e(3, 1).\n.decl e(x:number, y:number)\n.decl c(x:number, y:number) choice-domain x\n"
        "one: c(x, y) :- e(x, y).\ntwo: c(x, y) :- e(y, x).\n.output c\n"
    )
    lines = ask("whynot", "c(1, 3)", program="c.dl")[1].splitlines()
    assert lines[:4] == [
        "c(1, 3) does not hold",
        "  it is derived, but c(1, 2) is kept instead",
        "  one comes closest with",
        "    missing     e(1, 3)",
    ]
    assert not any("two comes closest" in line for line in lines)


def test_lists_of_which_the_beginning_is_known() -> None:
    Path("l.dl").write_text(
        ".decl l(x:list<number>)\nl([1, 2, 3]). l([]).\n.decl n(x:number)\nn(1). n(2).\n"
        "starts: starts(x) :- n(x), l([x | _]).\nno: other(x) :- n(x), !l([x | _]).\n.output starts, other\n"
    )
    assert "└─ no l([2 | _])" in ask("why", "other(2)", program="l.dl")[1].splitlines()
    lines = ask("whynot", "starts(2)", program="l.dl")[1].splitlines()
    assert "    missing     l([2 | _])" in lines
    assert "it would hold with  + l([2, 2, 3])" in lines
    assert "    in the way  l([1, 2, 3])" in ask("whynot", "other(1)", program="l.dl")[1].splitlines()


def test_a_bound_that_is_too_small_is_named() -> None:
    Path("eq.dl").write_text(
        ".decl e(x:number, y:number)\ne(1, 2). e(2, 3).\n.decl q(x:number, y:number) eqrel\nq(x, y) :- e(x, y).\n.output q\n"
    )
    code, text = ask("why", "q(3, 1)", "--depth", "1", program="eq.dl")
    assert code == 1
    assert text.endswith("error: a proof of q(3, 1) was not found within depth 1; raise the bound\n")


def test_the_time_is_over_when_garbage_has_been_collected() -> None:
    """What is raised in a finalizer is lost, and written to the terminal."""
    finished: list[bool] = []

    class Slow:
        def __init__(self) -> None:
            self.itself = self

        def __del__(self) -> None:
            end = time.monotonic() + 0.3
            while time.monotonic() < end:
                pass
            finished.append(True)

    def collect_and_go_on() -> None:
        gc.collect()
        time.sleep(60)

    Slow()
    with pytest.raises(TimeoutError), time_limit(0.1):
        collect_and_go_on()
    assert finished
