"""Parts that ship each other what they need, in the memory of the process that has made them.

Spark gives a task to any of its Python workers, but such a part cannot be made anew by one of them: all of them would have to be.
So tasks come to the parts. The worker that has made some answers for them on a socket, for as long as it lives; a task only takes
there what has come with a shuffle, and gives back to the next shuffle what the part says.

Spark may run a task twice. Requests are numbered, and one that was answered before gets the same answer.
"""

from __future__ import annotations

import os
import pickle
import socket
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from enum import Enum
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, Listener
from threading import Lock, Thread
from typing import NamedTuple

from pyspark import cloudpickle

from whence.backends.local.shared import Shared
from whence.parts import Member, Report, Turn
from whence.pipeline.base import Base
from whence.pipeline.log import Entry
from whence.pipeline.options import Follower
from whence.pipeline.parts.letters import decode_letter, encode_letter
from whence.pipeline.parts.orders import (
    EXPECTED,
    Action,
    Done,
    EpochWork,
    Hint,
    Job,
    PartFiles,
    told_warnings,
)
from whence.pipeline.parts.store import PartedStore
from whence.pipeline.parts.worker import Order
from whence.plan.deal import Dealing


class Address(NamedTuple):
    """Where a process answers for its parts."""

    host: str
    port: int
    process: int


@dataclass(frozen=True)
class Begin:
    """Begin an epoch of those that an order gives. The first state of a part is `at` -1."""

    at: int
    hint: Hint


class Final(Enum):
    """WRITE: finish the last epoch and write the segment. READ: take what has come, and wait."""

    WRITE = "write"
    READ = "read"


Step = Begin | Turn | Final


@dataclass(frozen=True)
class Request:
    """What a part is to do, once it has read the letters. `made` tells which making of the parts is meant."""

    folder: str
    made: str
    part: int
    number: int
    letters: Sequence[tuple[int, bytes]] = ()
    step: Step | None = None
    order: Order | None = None  # for whose sake, if it is new


@dataclass(frozen=True)
class Answer:
    """What a part says after a step: to the driver and to the others, and letters to these. Or that it is `lost`."""

    report: Report | None = None
    letters: dict[int, bytes] = field(default_factory=dict)
    done: Done | None = None
    lost: str = ""


@dataclass
class _Hosted:
    member: Member
    files: PartFiles
    epoch: int
    segment: str
    base: Base | None
    number: int = 0
    answer: Answer = field(default_factory=Answer)
    entries: list[Entry] = field(default_factory=list)
    finished: list[tuple[Entry, EpochWork]] = field(default_factory=list)
    at: int = -1
    exchanges: int = 0
    shipped: int = 0
    warnings: list[tuple[type[Warning], str]] = field(default_factory=list)
    follower: Follower | None = None


class _House:
    """What a process holds of one making: its parts, the words of values, which are the same in all of them, and where it
    answers for them to who knows the secret.
    """

    def __init__(self, secret: bytes, host: str) -> None:
        self.parts: dict[int, _Hosted] = {}
        self.shared = Shared()
        self._is_open = True
        self._listener = Listener((host, 0), backlog=64, authkey=secret)
        found: tuple[str, int] = self._listener.address
        self.address = Address(found[0], found[1], os.getpid())
        Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        self._is_open = False
        # Whoever waits for a call notices with the next one.
        with suppress(OSError), socket.create_connection(self.address[:2]):
            pass

    def _serve(self) -> None:
        with self._listener:
            while self._is_open:
                # Who does not know the secret, or leaves, is not answered.
                with suppress(AuthenticationError, EOFError, OSError), self._listener.accept() as connection:
                    request: Request = pickle.loads(connection.recv_bytes())  # noqa: S301 - from who knows the secret
                    connection.send_bytes(pickle.dumps(perform(request), pickle.HIGHEST_PROTOCOL))


_houses: dict[tuple[str, str], _House] = {}
_lock = Lock()  # one thing at a time happens to the parts of a process


# -- where the parts are ----------------------------------------------------------------------------------------------


def make(order: Order, made: str, part: int, secret: bytes, host: str) -> Address:
    """Makes a part, of the facts that are given or as of its last epoch, and tells where it is asked for from now on."""
    key = str(order.folder), made
    with _lock:
        for other in [other for other in _houses if other[0] == key[0] and other != key]:
            _houses.pop(other).close()
        if key not in _houses:
            _houses[key] = _House(secret, host)
        house = _houses[key]
        job: Job = cloudpickle.loads(order.job)
        with told_warnings() as told:
            house.parts[part] = _made(order, job, part, house.shared)
        house.parts[part].warnings += told
        return house.address


def _made(order: Order, job: Job, part: int, shared: Shared) -> _Hosted:
    assert isinstance(job.how, Dealing)
    store = PartedStore(order.folder, job.how.program, order.manifest, None)
    files = PartFiles(store, job, part)
    base = None if order.action is Action.BEGIN else store.base_of(part)
    member = Member(
        job.how,
        part,
        order.parts,
        job.shown(part),
        limits=job.limits,
        shared=shared,
        windows=None if base is None else base.windows,
        sizes=None if base is None else {name: len(rows) for name, rows in base.rows.items()},
    )
    return _Hosted(member, files, order.epoch, order.segments[part], base)


def ask(address: Address, request: Request, secret: bytes) -> Answer:
    own = _houses.get((request.folder, request.made))
    if own is not None and own.address == address:
        return perform(request)
    try:
        with Client((address.host, address.port), authkey=secret) as connection:
            connection.send_bytes(pickle.dumps(request, pickle.HIGHEST_PROTOCOL))
            answer: Answer = pickle.loads(connection.recv_bytes())  # noqa: S301 - from who knows the secret
            return answer
    except (OSError, EOFError, AuthenticationError) as error:
        return Answer(
            lost=f"the process that had part {request.part} does not answer ({type(error).__name__}: {error})"
        )


# -- what happens to them ---------------------------------------------------------------------------------------------


def perform(request: Request) -> Answer:
    """What a request asks for, in the process that has the part."""
    with _lock:
        house = _houses.get((request.folder, request.made))
        hosted = None if house is None else house.parts.get(request.part)
        if house is None or hosted is None:
            return Answer(lost=f"part {request.part} is not there any more")
        if request.number <= hosted.number:
            is_same = request.number == hosted.number
            return hosted.answer if is_same else Answer(lost=f"part {request.part} has gone on meanwhile")
        with told_warnings() as told:
            try:
                answer = _performed(hosted, request)
            except EXPECTED as error:
                # It has stopped half-way, and with it the others are of no use.
                del house.parts[request.part]
                failed = hosted.epoch + max(1, hosted.at + 1)
                answer = Answer(done=Done(request.part, failed=failed, error=error))
        hosted.warnings += told
        if answer.done is not None:
            answer = replace(answer, done=_signed(answer.done, hosted))
        hosted.number, hosted.answer = request.number, answer
        return answer


def _signed(done: Done, hosted: _Hosted) -> Done:
    told, hosted.warnings = hosted.warnings, []
    return replace(done, worker=f"{socket.gethostname()}:{os.getpid()}", remembered=True, warnings=told)


def _performed(hosted: _Hosted, request: Request) -> Answer:
    order = request.order
    if order is not None:
        if order.action is not Action.BEGIN and hosted.segment != order.segments[request.part]:
            return Answer(lost=f"part {request.part} has come to an epoch that was never committed")
        store = PartedStore(order.folder, hosted.files.store.program, order.manifest, None)
        hosted.files = replace(hosted.files, store=store)
    for sender, data in request.letters:
        hosted.member.receive(sender, list(decode_letter(data, hosted.member.node.program)))
    match request.step:
        case Begin():
            assert order is not None
            return _told(hosted, _begin(hosted, request.step, order))
        case Turn():
            return _told(hosted, hosted.member.turn(request.step))
        case Final.WRITE:
            return _write(hosted)
        case Final.READ:
            return Answer()
        case _:
            assert order is not None
            return Answer(done=_act(hosted, order))


def _begin(hosted: _Hosted, step: Begin, order: Order) -> Report:
    if hosted.at >= 0:
        _finish(hosted)
    hosted.at, hosted.exchanges, hosted.shipped = step.at, 0, 0
    if step.at < 0 and hosted.base is not None:
        base, hosted.base = hosted.base, None
        return hosted.member.begin_from(base.rows)
    if step.at <= 0:
        hosted.entries = hosted.files.given(order.exchange)
    if step.at < 0:
        updates = [update for entry in hosted.entries for update in entry.updates]
        return hosted.member.begin(updates, touched=hosted.member.how.program.relations, grows=True)
    entry = hosted.entries[step.at]
    return hosted.member.begin(entry.updates, entry.now, touched=step.hint.touched, grows=step.hint.grows)


def _told(hosted: _Hosted, report: Report) -> Answer:
    hosted.exchanges += 1
    hosted.shipped += report.told
    program = hosted.member.node.program
    letters = {part: encode_letter(letter, program) for part, letter in hosted.member.letters().items()}
    return Answer(report, letters)


def _finish(hosted: _Hosted) -> None:
    changes = hosted.member.finish()
    entry = hosted.entries[hosted.at]
    shown = hosted.files.shown(changes)
    follow, node = hosted.files.job.follow, hosted.member.node
    if follow is not None and hosted.follower is None:
        hosted.follower = follow(node)
    work = hosted.files.work(entry, changes, shown, node.last_epoch, hosted.follower)
    work = replace(work, exchanges=hosted.exchanges, shipped=hosted.shipped)
    hosted.finished.append((replace(entry, changes=shown), work))


def _write(hosted: _Hosted) -> Answer:
    part = hosted.member.part
    if hosted.at < 0:
        hosted.member.finish()
        return Answer(done=_measured(hosted, Done(part)))
    _finish(hosted)
    finished, hosted.finished, hosted.entries, hosted.at = hosted.finished, [], [], -1
    entries = [entry for entry, _ in finished]
    hosted.segment = hosted.files.store.write_segment(part, entries).name
    hosted.epoch = entries[-1].epoch
    return Answer(done=_measured(hosted, Done(part, segment=hosted.segment, epochs=[work for _, work in finished])))


def _act(hosted: _Hosted, order: Order) -> Done:
    done = Done(hosted.member.part)
    if order.action in (Action.BEGIN, Action.SNAPSHOT):
        made, segment = hosted.files.snapshot(hosted.member.node, hosted.epoch)
        hosted.segment = hosted.segment if segment is None else segment
        done = replace(done, segment=hosted.segment, snapshot=made)
    elif order.action is Action.PUBLISH:
        hosted.files.publish(hosted.member.node, order.epoch)
    return _measured(hosted, done)


def _measured(hosted: _Hosted, done: Done) -> Done:
    stats = hosted.member.node.stats()
    return replace(done, table_bytes=stats["bytes"], values=stats["values"], value_bytes=stats["value_bytes"])
