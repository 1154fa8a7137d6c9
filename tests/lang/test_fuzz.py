"""Nothing but `ProgramError` comes out of loading, and nothing but the documented errors out of evaluating."""

import warnings
from contextlib import suppress

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tests.lang.programs import facts_of, mutated_programs

from whence.lang import Program, ProgramError, load
from whence.lang.diagnostics import render
from whence.limits import Limits, RunawayError
from whence.reference import FunctionError, evaluate

LIMITS = Limits(max_rounds=50, max_tuples=20_000, timeout=2)
SLOW = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


def loaded(text: str) -> Program | None:
    try:
        return load(text)
    except ProgramError as error:
        shown = [render(each, error.source) for each in error.diagnostics]
    assert any("error[W" in each for each in shown)
    return None


@SLOW
@given(st.text())
@example('"')
@example("\0")
@example("p(\ud800).")
@example(".decl p(x:number)\r\np(1).\r\n.output p\x1a")
def test_any_text_is_loaded_or_refused(text: str) -> None:
    loaded(text)


@SLOW
@given(st.text(alphabet="pqxy01(),.:-!=<>[]{}|@$\"#/*+;_ \n\\'", max_size=60))
def test_any_punctuation_is_loaded_or_refused(text: str) -> None:
    loaded(text)


@SLOW
@given(st.binary())
def test_any_bytes_are_loaded_or_refused(raw: bytes) -> None:
    loaded(raw.decode("latin-1"))
    loaded(raw.decode("utf-8", "replace"))


@settings(SLOW, max_examples=400)
@given(mutated_programs(), st.data())
def test_a_mutated_program_is_refused_or_can_be_evaluated(text: str, data: st.DataObject) -> None:
    program = loaded(text)
    if program is None:
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with suppress(RunawayError, FunctionError):
            evaluate(program, data.draw(facts_of(program)), limits=LIMITS)
