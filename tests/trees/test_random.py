"""By shredding the same as by structural recursion, on random trees and queries, in every semiring."""

from __future__ import annotations

import os
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from tests.semiring.values import VALUES
from tests.trees.random_trees import forests, queries, semirings

from whence.trees.check import load_query
from whence.trees.evaluate import evaluate_query
from whence.trees.shred import evaluate_shredded

PHASES = (Phase.explicit, Phase.reuse, Phase.generate)  # queries come from seeds, which cannot be made smaller
EXAMPLES = int(os.environ.get("WHENCE_EXAMPLES", "6"))


@pytest.mark.parametrize("name", semirings())
@settings(max_examples=EXAMPLES, phases=PHASES)
@given(data=st.data())
def test_shredding_gives_what_structural_recursion_gives(name: str, data: Any) -> None:
    semiring, values = VALUES[name]
    documents = {each: data.draw(forests(semiring, values)) for each in "ST"}
    query = load_query(data.draw(queries(semiring)), semiring)
    assert evaluate_shredded(query, documents, semiring) == evaluate_query(query, documents, semiring)
