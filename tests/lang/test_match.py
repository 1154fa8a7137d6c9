"""`match` means what Python's own regular expressions mean, although another engine, which can be stopped, does the work."""

from __future__ import annotations

import re
import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

from whence.lang.functors import matches
from whence.lang.undefined import Undefined

pieces = st.sampled_from(
    [
        *"ab0-^$.|()[]*+?\\,",
        "\\d",
        "\\w",
        "\\s",
        "\\b",
        "[^a]",
        "[a-c]",
        "(?:",
        "(?=",
        "(?!",
        "{1,2}",
        "{2}",
        "\\1",
        "é",
        "\n",
    ]
)
patterns = st.lists(pieces, max_size=8).map("".join)
texts = st.text("ab0 ^-é\n", max_size=6)


@given(patterns, texts)
def test_a_pattern_matches_what_python_says(pattern: str, text: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of sets that may be read in another way one day
        try:
            expected = re.fullmatch(pattern, text) is not None
        except re.error:
            expected = None
        try:
            found = matches(pattern, text)
        except Undefined:
            found = None
    assert found == expected


def test_a_pattern_that_takes_too_long_is_given_up() -> None:
    with pytest.raises(TimeoutError):
        matches("(a|aa)+", "a" * 80 + "b", 0.01)


@pytest.mark.parametrize("pattern", ["\\p{L}", "(?r)ab", "a{e}", "\\X", "(?|a|b)"])
def test_what_only_the_other_engine_knows_is_no_pattern(pattern: str) -> None:
    with pytest.raises(Undefined):
        matches(pattern, "ab")
