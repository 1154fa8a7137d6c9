"""Values as words: equal words are equal values, whatever they are made of, and words that nobody holds are used again."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from whence import Session, Update, load
from whence.backends.local.words import FEWEST, Dictionary, Words
from whence.lang.deep import compound
from whence.lang.types import FLOAT, NUMBER, SYMBOL, UNSIGNED, Kind, ListKind, Tuple, Types, Value, Variant
from whence.prepared import prepare

PROGRAM = load("""
.type Pair = [left:number, right:symbol]
.type Chain = [head:float, tail:Chain]
.type Tree = Leaf {} | Node {left:Tree, value:symbol, right:Tree} | Rose {trees:list<Tree>, pair:Pair}
.decl pair(x:Pair) .decl chain(x:Chain) .decl tree(x:Tree) .decl lists(x:list<list<number>>)
.output pair, chain, tree, lists
""")
TYPES = PROGRAM.types

numbers = st.integers(-(2**63), 2**63 - 1)
texts = st.text(max_size=3)
pairs = st.none() | st.tuples(numbers, texts)
chains = st.recursive(st.none(), lambda tail: st.tuples(st.floats(allow_nan=False).map(lambda x: x + 0.0), tail))
trees = st.recursive(
    st.just(Variant("Leaf")),
    lambda tree: (
        st.tuples(tree, texts, tree).map(lambda args: Variant("Node", args))
        | st.tuples(st.lists(tree, max_size=3).map(tuple), pairs).map(lambda args: Variant("Rose", args))
    ),
)
lists = st.lists(st.lists(numbers, max_size=3).map(tuple), max_size=4).map(tuple)
KINDS: dict[str, tuple[Kind, st.SearchStrategy[Value]]] = {
    "number": (NUMBER, numbers),
    "unsigned": (UNSIGNED, st.integers(0, 2**64 - 1)),
    "float": (FLOAT, st.floats(allow_nan=False).map(lambda x: x + 0.0)),
    "symbol": (SYMBOL, texts),
    "pair": (TYPES.kinds["Pair"], pairs),
    "chain": (TYPES.kinds["Chain"], chains),
    "tree": (TYPES.kinds["Tree"], trees),
    "lists": (ListKind(ListKind(NUMBER)), lists),
}


@pytest.mark.parametrize("name", KINDS)
@given(data=st.data())
def test_values_come_back_and_equal_values_have_equal_words(name: str, data: st.DataObject) -> None:
    kind, strategy = KINDS[name]
    values = data.draw(st.lists(strategy, max_size=12))
    dictionary = Dictionary(TYPES)
    words = dictionary.encode_column(values, kind)
    assert dictionary.decode_column(words, kind) == values
    assert len(set(words.tolist())) == len(set(values))
    assert [dictionary.find(value, kind) for value in values] == words.tolist()
    assert dictionary.encode_column(values[::-1], kind).tolist() == words.tolist()[::-1]


@given(st.lists(trees, max_size=8), st.lists(trees, max_size=8))
def test_what_was_not_encoded_is_not_found(known: list[Value], asked: list[Value]) -> None:
    dictionary = Dictionary(TYPES)
    kind = TYPES.kinds["Tree"]
    dictionary.encode_column(known, kind)
    parts = set(known)
    pending = list(known)
    while pending:  # parts of known values are known too
        tree = pending.pop()
        assert isinstance(tree, Variant)
        inside = tree.args[0] if tree.branch == "Rose" else tree.args[::2]
        assert isinstance(inside, tuple)
        parts.update(inside)
        pending += inside
    assert [dictionary.find(tree, kind) is not None for tree in asked] == [tree in parts for tree in asked]


def test_integers_and_equal_floats_inside_records_are_told_apart() -> None:
    types = load(".type I = [x:number] .type F = [x:float] .decl i(x:I) .decl f(x:F) .output i, f").types
    dictionary = Dictionary(types)
    words = dictionary.encode((1,), types.kinds["I"]), dictionary.encode((1.0,), types.kinds["F"])
    decoded = dictionary.decode_column(np.array(words[1:]), types.kinds["F"])
    assert repr(decoded) == "[(1.0,)]"


def test_a_value_may_be_nested_deeper_than_python_can_recurse() -> None:
    chain: Value = None
    for at in range(3_000):
        chain = compound((float(at), chain))
    dictionary = Dictionary(TYPES)
    word = dictionary.encode(chain, TYPES.kinds["Chain"])
    assert dictionary.decode_column(np.array([word]), TYPES.kinds["Chain"]) == [chain]
    assert dictionary.find(chain, TYPES.kinds["Chain"]) == word


def test_lists_share_their_ends() -> None:
    dictionary = Dictionary(Types())
    kind = ListKind(NUMBER)
    dictionary.encode_column([tuple(range(at, 1000)) for at in range(1000)], kind)
    assert len(dictionary) == 1001


class _Held:
    """Holds the words of some values."""

    def __init__(self, dictionary: Dictionary, values: list[tuple[Kind, Value]]) -> None:
        self.words = [(kind, dictionary.encode(value, kind)) for kind, value in values]
        dictionary.holders.add(self)

    def held_words(self) -> Iterator[tuple[Kind, Words]]:
        for kind, word in self.words:
            if kind not in (NUMBER, UNSIGNED, FLOAT):
                yield kind, np.array([word])

    def cells_changed(self) -> None:
        pass


@given(st.data())
def test_what_is_held_survives_and_the_rest_is_used_again(data: st.DataObject) -> None:
    dictionary = Dictionary(TYPES)
    values = st.sampled_from(sorted(KINDS)).flatmap(
        lambda name: st.tuples(st.just(KINDS[name][0]), KINDS[name][1])  # type: ignore[arg-type,return-value]
    )
    for _ in range(3):
        held = _Held(dictionary, data.draw(st.lists(values, max_size=6)))
        for kind, value in data.draw(st.lists(values, max_size=6)):
            dictionary.encode(value, kind)
        wanted = [dictionary.decode_column(np.array([word]), kind) for kind, word in held.words]
        dictionary.reclaim()
        assert [dictionary.decode_column(np.array([word]), kind) for kind, word in held.words] == wanted
        for (kind, word), (value,) in zip(held.words, wanted, strict=True):
            assert dictionary.encode(value, kind) == word
        fresh = data.draw(st.lists(values, max_size=6))
        words = [dictionary.encode(value, kind) for kind, value in fresh]
        for (kind, value), word in zip(fresh, words, strict=True):
            assert dictionary.decode_column(np.array([word]), kind) == [value]
        assert [dictionary.decode_column(np.array([word]), kind) for kind, word in held.words] == wanted
        del held


def test_symbols_and_lists_that_come_and_go_are_forgotten() -> None:
    session = Session(
        load(
            ".decl e(x:symbol, y:symbol) .input e .decl p(p:list<symbol>) "
            'p([x, y]) :- e(x, y). p([x | t]) :- e(x, y), p([y | t]), x != "kept". .output p'
        )
    )
    session.apply([Update("+", "e", ("kept", "too"))])
    _pass_through(session, "e", lambda at: (f"a{at}", f"b{at}"))
    assert session.stats()["values"] < 3 * FEWEST
    assert set(session.relation("p")) == {(("kept", "too"),)}
    assert set(session.relation("e")) == {("kept", "too")}


def _pass_through(session: Session, relation: str, row: Callable[[int], Tuple]) -> None:
    """Rows that come in one epoch and go in the next: several times as many as are forgotten at once."""
    before: list[Tuple] = []
    for start in range(0, 5 * FEWEST, 50):
        rows = [row(at) for at in range(start, start + 50)]
        session.apply(
            [*(Update("+", relation, each) for each in rows), *(Update("-", relation, each) for each in before)]
        )
        before = rows
    session.apply([Update("-", relation, each) for each in before])


def test_sessions_that_share_words_keep_each_others() -> None:
    prepared = prepare(load(".decl e(x:symbol) .input e .decl p(x:list<symbol>) p([x]) :- e(x). .output p"))
    one, other = Session(prepared), Session(prepared)
    other.apply([Update("+", "e", (f"other{at}",)) for at in range(100)])
    _pass_through(one, "e", lambda at: (f"a{at}",))
    assert set(other.relation("p")) == {((f"other{at}",),) for at in range(100)}
    assert one.stats()["values"] < 3 * FEWEST


@given(
    lists=st.lists(st.lists(st.none() | st.text("abcd", max_size=2), max_size=30), max_size=4), distinct=st.booleans()
)
def test_many_texts_are_numbered_as_they_are_one_by_one(lists: list[list[str | None]], distinct: bool) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("whence.backends.local.words.MANY", 0)
        many, single = Dictionary(), Dictionary()
        for drawn in lists:
            texts = list(dict.fromkeys(drawn)) if distinct else drawn
            found = many.number_distinct(texts) if distinct else many.encode_column(texts, SYMBOL)
            assert found.tolist() == [single.number(text) for text in texts]
            assert len(many) == len(single)
        assert many.values == single.values
        assert many.numbers == single.numbers


@given(steps=st.lists(st.tuples(st.lists(st.text("abc", max_size=2), max_size=8), st.integers(1, 3)), max_size=6))
def test_many_texts_are_taken_as_they_are_one_by_one(steps: list[tuple[list[str], int]]) -> None:
    """Between steps all but some words are given up, and used again for other texts."""
    dictionary = Dictionary()
    for texts, kept_one_of in steps:
        words = dictionary.encode_column(texts, SYMBOL)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("whence.backends.local.words.MANY", 0)
            assert dictionary.decode_column(words, SYMBOL) == texts
            assert dictionary.decode_rows(np.stack([words, words], axis=1), [SYMBOL, NUMBER]) == [
                *zip(texts, words.tolist(), strict=True)
            ]
        held = _Held(dictionary, [(SYMBOL, text) for text in texts[::kept_one_of]])
        dictionary.reclaim()
        del held


def test_texts_that_came_as_a_column_are_found_and_given_up() -> None:
    dictionary = Dictionary()
    dictionary.number_distinct([f"text {at}" for at in range(2 * FEWEST)])
    held = _Held(dictionary, [(SYMBOL, f"text {at}") for at in range(0, 2 * FEWEST, 2)])
    assert dictionary.find("text 3", SYMBOL) == 4
    assert dictionary.find("text", SYMBOL) is None
    dictionary.reclaim()
    assert len(dictionary) == len(held.words) == FEWEST
    assert dictionary.encode_column(["text 2", "text 0", "new"], SYMBOL).tolist()[:2] == [3, 1]
