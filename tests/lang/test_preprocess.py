from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from whence.lang.diagnostics import Diagnostic
from whence.lang.preprocess import preprocess
from whence.lang.source import Place, Source
from whence.lang.tree import Span


def run(text: str, folder: Path | None = None) -> Source:
    source, found = preprocess(text, "main.dl", folder)
    assert not found
    return source


def expand(text: str) -> str:
    """The lines that are left, without the empty ones that directives leave."""
    return "\n".join(line for line in run(text).text.split("\n") if line.strip())


def refuse(text: str, folder: Path | None = None) -> tuple[Source, Diagnostic]:
    source, found = preprocess(text, "main.dl", folder)
    assert len(found) == 1, found
    return source, found[0]


def underlined(place: Place) -> str:
    starts = place.file.line_starts
    return place.file.text[
        starts[place.line - 1] + place.column - 1 : starts[place.end_line - 1] + place.end_column - 1
    ]


def origin(source: Source, part: str) -> tuple[str, int, str]:
    """The file, line and text that a part of the output came from."""
    start = source.text.index(part)
    place = source.place(Span(start, start + len(part)))
    return place.file.name, place.line, underlined(place)


# -- plain text -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text", ["", "a(1).", 'a("// #").\r\n/* # */ b(x) :- x = 6 / 2. // "\n', "a # b", "a\n.includes\n"]
)
def test_text_without_directives_is_unchanged(text: str) -> None:
    source = run(text)
    assert source.text == text
    assert len(source.segments) == 1


def test_a_directive_in_a_comment_is_text() -> None:
    text = "/*\n#define A B\n*/\nA.\n"
    assert run(text).text == text


# -- macros -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("definitions", "use", "expansion"),
    [
        ("#define N 5", "a(N, N1, xN, N?).", "a(5, N1, xN, N?)."),
        ("#define x 5", "a(0x10, x).", "a(0x10, 5)."),
        ("#define N 5 // five\n#define M /* six */ 6", "N M", "5 6"),
        ("  #  define N 5", "N", "5"),
        ("#define E", "a(E).", "a()."),
        ("#define N 5", '"N" "\\"N" // N', '"N" "\\"N" // N'),
        ("#define N 5", "/* N\nN */ N", "/* N\nN */ 5"),
        ("#define N 5\n#undef N", "N", "N"),
        ("#define N 5\n#define N  5", "N", "5"),
        ("#define F(x, y) r(y, x)", "F(1, 2).", "r(2, 1)."),
        ("#define F(x, y) r(y, x)", "F (\n1, // one\n2\n).", "r(2, 1)."),
        ("#define F(x, y) x y", 'F(g(1, 2), "a, )")', 'g(1, 2) "a, )"'),
        ("#define F(x, y) x y", "F([1, 2], {a, b})", "[1, 2] {a, b}"),
        ("#define F() 1", "F() F( )", "1 1"),
        ("#define F(x) [x]", "F()", "[]"),
        ("#define F(x) x", "F + F", "F + F"),
        ("#define F (x)", "F(1)", "(x)(1)"),
        ('#define F(x) "x" x', "F(1)", '"x" 1'),
        ("#define F(x) a(x), \\\n  b(x)", "F(1)", "a(1),   b(1)"),
        ("#define F(x) r(#x)", 'F(a  + "b\\n")', 'r("a + \\"b\\\\n\\"")'),
        ("#define N 5\n#define F(x) # x x", "F(N)", '"N" 5'),
        ("#define F(x, y) x##_##y", "F(a, b)", "a_b"),
        ("#define F(x, y) <x ## y>", "F(, b) F(a, ) F(, )", "<b> <a> <>"),
        ("#define N 5\n#define F(x) x##1 N##x", "F(N)", "N1 NN"),
        ("#define F(x, y) x##y", "F(a b, c d)", "a bc d"),
        ("#define N a ## b", "N", "ab"),
        ("#define ab 7\n#define F(x, y) x##y", "F(a, b)", "7"),
    ],
)
def test_macros_are_replaced(definitions: str, use: str, expansion: str) -> None:
    assert expand(f"{definitions}\n{use}") == expansion


@pytest.mark.parametrize(
    ("definitions", "use", "expansion"),
    [
        ("#define A B\n#define B A", "A B", "A B"),
        ("#define A B + A\n#define B 1", "A", "1 + A"),
        ("#define F(x) x + F(x)", "F(F(1))", "1 + F(1) + F(1 + F(1))"),
        ("#define F(x) x\n#define G F", "G(1)", "1"),
        ("#define F(x) x\n#define G F (", "G 1)", "1"),
        ("#define F(x) x * G\n#define G(x) F(x)", "F(2)(9)", "2 * 9 * G"),
        ("#define F(x, y) x y\n#define P 1, 2", "F(P, 3)", "1, 2 3"),
    ],
)
def test_expansions_are_expanded_again_but_never_inside_themselves(definitions: str, use: str, expansion: str) -> None:
    assert expand(f"{definitions}\n{use}") == expansion


def test_a_macro_use_stands_for_its_expansion() -> None:
    source = run("#define F(x) r(x), s(x)\na(x) :- F(\n  x), q(x).\n")
    assert source.text == "\na(x) :- r(x), s(x), q(x).\n"
    assert origin(source, "a(x)") == ("main.dl", 2, "a(x)")
    assert origin(source, "s(x)") == ("main.dl", 2, "F(\n  x)")
    assert origin(source, "q(x)") == ("main.dl", 3, "q(x)")
    assert origin(source, ":- r(x), s(x), q") == ("main.dl", 2, ":- F(\n  x), q")


def test_macros_that_grow_without_end_are_refused_once() -> None:
    doubling = "".join(f'#define A{at} A{at + 1} A{at + 1} "{"-" * 50_000}"\n' for at in range(40))
    _, problem = refuse(f"{doubling}A0 A0 A1\n")
    assert "characters" in problem.text


def test_an_argument_used_a_thousand_times_is_counted_before_it_is_written() -> None:
    text = f"#define B(x) {'x ' * 1000}\nB(B(B(1)))"
    assert [problem.code for problem in preprocess(text, "main.dl", None)[1]] == ["W0105"]


def test_calls_nested_too_deeply_are_refused() -> None:
    _, problem = refuse(f"#define F(x) x\n{'F(' * 500}{')' * 500}")
    assert problem.code == "W0110"


# -- conditionals -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ("0", False),
        ("1", True),
        ("defined(A)", True),
        ("defined A && !defined(B)", True),
        ("defined(B) || A == 3", True),
        ("A > 2 == 1", True),
        ("A < 2 || A != 3", False),
        ("!(A >= 3 && 1)", False),
        ("1 || 1 && 0", True),
        ("B", False),
        ("TWICE(A) == 1", False),
        ("ADD(A, 1) <= 3", True),
    ],
)
def test_a_condition_chooses_a_branch(condition: str, holds: bool) -> None:
    definitions = "#define A 3\n#define TWICE(x) x && 0\n#define ADD(x, y) x\n"
    assert expand(f"{definitions}#if {condition}\nyes\n#else\nno\n#endif") == ("yes" if holds else "no")


def test_the_first_branch_that_holds_is_kept() -> None:
    text = "#if {}\none\n#elif {}\ntwo\n#elif {}\nthree\n#else\nfour\n#endif"
    assert expand(text.format(0, 1, 1)) == "two"
    assert expand(text.format(1, 1, "not )( a condition")) == "one"
    assert expand(text.format(0, 0, 0)) == "four"


def test_a_part_left_out_may_hold_anything() -> None:
    skipped = '#if 1\n#else\n#endif\n#include "no such file"\n#what\n.once\n"open\n/*\n#endif\n*/\n#define A 1'
    assert expand(f"#ifdef B\n{skipped}\n#endif\nA") == "A"
    assert expand(f"#ifndef B\nA\n#elif )(\n{skipped}\n#endif") == "A"


def test_lines_after_directives_keep_their_numbers() -> None:
    source = run("#define A \\\n  1\n#if 0\nx\ny\n#endif\nA b\n")
    assert source.text == "\n" * 6 + "1 b\n"
    assert origin(source, "b") == ("main.dl", 7, "b")


# -- includes ---------------------------------------------------------------------------------------------------------


def test_included_files_are_found_from_the_including_file(tmp_path: Path) -> None:
    (tmp_path / "lib" / "deep").mkdir(parents=True)
    (tmp_path / "lib" / "one.dl").write_text('one(1).\n.include "deep/two.dl"\n// end')
    (tmp_path / "lib" / "deep" / "two.dl").write_text("#define N 5\n  two(N).")
    source = run('  #include "lib/one.dl"\nmain(N).', tmp_path)
    assert "".join(source.text.split("\n")) == "one(1).  two(5).// endmain(5)."
    assert origin(source, "one(1)") == ("lib/one.dl", 1, "one(1)")
    assert origin(source, "two") == ("lib/deep/two.dl", 2, "two")
    assert origin(source, "(5)") == ("lib/deep/two.dl", 2, "(N)")
    assert origin(source, "main") == ("main.dl", 2, "main")


def test_a_file_marked_once_is_included_once(tmp_path: Path) -> None:
    (tmp_path / "a.dl").write_text('.once\na(1).\n#include "b.dl"\n')
    (tmp_path / "b.dl").write_text('#include "./a.dl"\nb(1).\n')
    source = run('#include "a.dl"\n#include "b.dl"\n', tmp_path)
    assert source.text.split() == ["a(1).", "b(1).", "b(1)."]


def test_a_guarded_file_may_include_itself(tmp_path: Path) -> None:
    (tmp_path / "a.dl").write_text('\n#ifndef A\n#define A\na(1).\n#include "a.dl"\n#endif\n')
    assert run('#include "a.dl"', tmp_path).text.split() == ["a(1)."]


def test_an_include_cycle_is_refused_with_its_chain(tmp_path: Path) -> None:
    (tmp_path / "a.dl").write_text('a(1).\n.include "b.dl"\n')
    (tmp_path / "b.dl").write_text('b(1).\n  .include "a.dl" // again\n')
    source, problem = refuse('#include "a.dl"\nmain(1).\n', tmp_path)
    assert problem.text == "cannot include a.dl: files include each other: a.dl -> b.dl -> a.dl"
    place = source.place(problem.span)
    assert (place.file.name, place.line) == ("b.dl", 2)
    assert source.text.split() == ["a(1).", "b(1).", "main(1)."]


def test_a_program_that_includes_itself_is_refused(tmp_path: Path) -> None:
    text = '#include "main.dl"'
    (tmp_path / "main.dl").write_text(text)
    _, problem = refuse(text, tmp_path)
    assert "main.dl -> main.dl" in problem.text


def test_a_chain_of_many_files_is_refused_and_not_a_crash(tmp_path: Path) -> None:
    for at in range(500):
        (tmp_path / f"{at}.dl").write_text(f'#include "{at + 1}.dl"')
    _, problem = refuse('#include "0.dl"', tmp_path)
    assert "deep" in problem.text


@pytest.mark.parametrize("name", ["no.dl", "folder", "no\0.dl", "n" * 5000])
def test_a_file_that_is_not_there_is_refused(name: str, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    _, problem = refuse(f'#include "{name}"', tmp_path)
    assert problem.code == "W0104"


def test_files_that_include_others_twice_are_refused_once(tmp_path: Path) -> None:
    for at in range(40):
        (tmp_path / f"{at}.dl").write_text(f'#include "{at + 1}.dl"\n' * 2)
    (tmp_path / "40.dl").write_text("p(1).\n")
    _, problem = refuse('#include "0.dl"', tmp_path)
    assert "10,000 times" in problem.text


def test_a_file_that_is_not_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "data.dl").write_bytes(b"\xff\xfe")
    _, problem = refuse('.include "data.dl"', tmp_path)
    assert problem.text == "cannot include data.dl: it is not UTF-8 text"


def test_the_library_is_found_whatever_lies_beside_the_program(tmp_path: Path) -> None:
    (tmp_path / "whence").mkdir()
    (tmp_path / "whence" / "paths.dl").write_text("mine().")
    for folder in (tmp_path, None):
        source = run('.include "whence/paths.dl"\n.include "whence/paths.dl"', folder)
        assert source.text.count(".comp Hops<Node, link>") == 1
        assert "mine" not in source.text
        file, line, text = origin(source, ".comp Hops")
        assert (file, text) == ("whence/paths.dl", ".comp Hops")
        assert line > 1


@pytest.mark.parametrize("name", ["whence/path.dl", "whence/", "whence/../library/paths.dl"])
def test_a_name_that_the_library_does_not_have_is_refused_with_those_it_has(name: str) -> None:
    _, found = refuse(f'.include "{name}"')
    assert found.text == f"cannot include {name}: the library has no such file"
    assert found.advice.startswith("it has whence/paths.dl, whence/reach.dl, ")


def test_a_program_that_is_no_file_includes_nothing() -> None:
    _, problem = refuse('.include "a.dl"')
    assert problem.text == "cannot include a.dl: the program was not read from a file"


# -- what is refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "code", "place"),
    [
        ("a\n  #pragma x\nb", "W0105", "  #pragma x"),
        ("# a comment", "W0105", "# a comment"),
        ("#", "W0105", "#"),
        ("#define", "W0105", "#define"),
        ("#define F(x, x) x", "W0105", "#define F(x, x) x"),
        ("#define F(1) x", "W0105", "#define F(1) x"),
        ("#define F(...) x", "W0106", "#define F(...) x"),
        ("#define F(x) #y\nF", "W0105", "#define F(x) #y"),
        ("#define F(x) a #\nF", "W0105", "#define F(x) a #"),
        ("#define F #x\nF", "W0105", "#define F #x"),
        ("#define F(x) a \\\n ##\nF", "W0105", "#define F(x) a \\\n ##"),
        ("#define F(x) ## x\nF", "W0105", "#define F(x) ## x"),
        ("#define A 1\n#define A 2\nA", "W0105", "#define A 2"),
        ("#define F(x) x\na F(1, [2, 3]) b", "W0105", "F(1, [2, 3])"),
        ("#define F(x, y) x\na F((1, 2)) b", "W0105", "F((1, 2))"),
        ("#define F() x\nF(1)", "W0105", "F(1)"),
        ("#define F(x) x\nF(1, F(2)", "W0102", "F(1, F(2)"),
        ("#define F(x) x\nF(1\n#undef F\n)", "W0105", "F(1\n"),
        ('#define F(x) x\nF("a)\n', "W0102", 'F("a)'),
        ("#undef", "W0105", "#undef"),
        ("#undef A B", "W0105", "#undef A B"),
        ("#ifdef\n#endif", "W0105", "#ifdef"),
        ("#if\n#endif", "W0105", "#if"),
        ("#if 1 +\n#endif", "W0105", "#if 1 +"),
        ("#if (1\n#endif", "W0105", "#if (1"),
        ("#if 1 2\n#endif", "W0105", "#if 1 2"),
        ("#if defined\n#endif", "W0105", "#if defined"),
        (f"#if {'9' * 5000}\n#endif", "W0105", f"#if {'9' * 5000}"),
        (f"#if {'(' * 5000}\n#endif", "W0110", f"#if {'(' * 5000}"),
        ("a\n#if 1\nb", "W0105", "#if 1"),
        ("#if 0\n#ifdef A\n#endif\n", "W0105", "#if 0"),
        ("#else", "W0105", "#else"),
        ("#elif 1", "W0105", "#elif 1"),
        ("#endif", "W0105", "#endif"),
        ("#if 1\n#else\n#elif 1\n#endif", "W0105", "#elif 1"),
        ("#if 1\n#else if 1\n#endif", "W0105", "#else if 1"),
        ("#include <a.dl>", "W0105", "#include <a.dl>"),
        ('.include "a" "b"', "W0105", '.include "a" "b"'),
        (".once more", "W0105", ".once more"),
        ('a("b).\nc', "W0102", '"b).'),
        ('a("b\\', "W0102", '"b\\'),
        ("a /* b\nc", "W0102", "/* b\nc"),
        ("/*/", "W0102", "/*/"),
        ('#define A "b', "W0102", '#define A "b'),
        ("#define A /* b", "W0102", "#define A /* b"),
    ],
)
def test_what_cannot_be_read_is_refused_where_it_stands(text: str, code: str, place: str) -> None:
    source, problem = refuse(text)
    assert problem.code == code
    assert underlined(source.place(problem.span)) == place


def test_a_comment_that_hides_the_end_of_a_conditional_is_reported_with_it() -> None:
    source, found = preprocess("#if 0\n/* b\n#endif", "main.dl", None)
    assert [underlined(source.place(problem.span)) for problem in found] == ["/* b\n#endif", "#if 0"]


def test_line_markers_are_dropped() -> None:
    assert expand('#line 12 "a.dl"\n# 12 "a.dl"\na') == "a"


def test_every_problem_of_a_file_is_reported() -> None:
    _, found = preprocess('#what\n"open\n#else\n.include "a"\n#if 1', "main.dl", None)
    assert [problem.code for problem in found] == ["W0105", "W0102", "W0105", "W0104", "W0105"]


# -- any text ---------------------------------------------------------------------------------------------------------

PIECES = (
    "#define F(x) x x\n|#define G F(\n|#define A B A|#define B F|#undef F|#if |#ifdef A|#elif |#else|#endif|#include |"
    '.include "a"|.once|F(|F|G|A|B|defined|(|)|[|]|,|\\\n|\\|\n|\n|"|//|/*|*/|0|1|&&|!|==| |#|##|x|\0|\r|é'
).split("|")


@given(st.lists(st.sampled_from(PIECES), max_size=60).map("".join) | st.text())
@example("#define F(x) x\nF(\n#endif")
def test_any_text_is_preprocessed_and_every_part_of_it_has_a_place(text: str) -> None:
    source, found = preprocess(text, "main.dl", Path("no such folder"))
    ends = [*(segment.start for segment in source.segments[1:]), len(source.text)]
    assert all(before.start < after.start for before, after in pairwise(source.segments))
    for segment, end in zip(source.segments, ends, strict=True):
        if segment.length is None:
            copied = source.text[segment.start : end]
            assert text[segment.origin : segment.origin + len(copied)] == copied
        else:
            assert segment.origin + segment.length <= len(text)
    for problem in found:
        assert 0 <= problem.span.start <= problem.span.end <= len(source.text)
        source.place(problem.span)
