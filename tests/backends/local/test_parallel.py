from __future__ import annotations

import os
import threading

import pytest

from whence.backends.local import parallel


def test_two_calls_run_at_the_same_time() -> None:
    here, there = threading.Event(), threading.Event()

    def one() -> bool:
        here.set()
        return there.wait(10)

    def other() -> bool:
        there.set()
        return here.wait(10)

    assert parallel.run([one, other]) == [True, True]


def test_more_calls_than_before_get_more_threads() -> None:
    for number in (2, 5, 3):
        meeting = threading.Barrier(number, timeout=10)
        assert sorted(parallel.run([meeting.wait] * number)) == list(range(number))


def test_a_call_alone_stays_in_its_thread() -> None:
    assert parallel.run([threading.current_thread]) == [threading.current_thread()]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_process_gets_a_thread_of_its_own() -> None:
    assert parallel.run([lambda: 1, lambda: 2]) == [1, 2]
    child = os.fork()
    if child == 0:
        os._exit(0 if parallel.run([lambda: 3, lambda: 4]) == [3, 4] else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_a_process_may_be_kept_to_one_core(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "CORES", 2)
    with parallel.on_one_core():
        assert not parallel.is_worthwhile(parallel.LARGE)
    assert parallel.is_worthwhile(parallel.LARGE)
