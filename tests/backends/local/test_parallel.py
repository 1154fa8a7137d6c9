from __future__ import annotations

import os
import threading
from concurrent.futures import Future
from functools import partial

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


def test_more_calls_than_threads_wait_for_their_turn() -> None:
    assert parallel.run([partial(pow, 2, each) for each in range(9)]) == [2**each for each in range(9)]


def test_who_helps_calls_nobody_else() -> None:
    def nested() -> list[threading.Thread]:
        return parallel.run([threading.current_thread] * 3)

    here, *others = parallel.run([nested] * (parallel.CORES + 2))
    assert here[0] is threading.current_thread()
    assert all(len(set(each)) == 1 for each in others)


def test_threads_may_ask_at_once() -> None:
    asked = [Future[list[int]]() for _ in range(8)]

    def ask(future: Future[list[int]], number: int) -> None:
        future.set_result([sum(parallel.run([lambda: number] * 3)) for _ in range(100)])

    for number, future in enumerate(asked):
        threading.Thread(target=ask, args=(future, number)).start()
    assert [future.result(30) for future in asked] == [[3 * number] * 100 for number in range(8)]


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
