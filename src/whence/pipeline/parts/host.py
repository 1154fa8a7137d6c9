"""Parts that ship each other what they need, in the memory of the process that has made them.

Spark gives a task to any of its Python workers, but such a part cannot be made anew by one of them: all of them would have to be.
So parts stay where a task has made them, and the worker answers for them, for as long as it lives: to the driver, which tells it
step by step what its parts are to do, and to the other workers, which bring what their parts say to these. A step is answered
when all of that has been brought.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from threading import Lock

from pyspark import cloudpickle

from whence.backends.local import parallel
from whence.backends.local.shared import Shared
from whence.parts import Member, Report, Turn
from whence.pipeline.base import Base
from whence.pipeline.log import Entry
from whence.pipeline.options import Follower
from whence.pipeline.parts.calls import Address, Lines, Office, Unreachable
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


@dataclass(frozen=True)
class Begin:
    """Begin an epoch of those that an order gives. The first state of a part is `at` -1."""

    at: int
    hint: Hint


class Final(Enum):
    """WRITE: finish the last epoch and write the segment."""

    WRITE = "write"


Step = Begin | Turn | Final


@dataclass(frozen=True)
class Request:
    """What some parts are to do, once they have read the letters of the steps before the one with this `number`.

    Without a step, they carry out the order by themselves. `made` tells which making of the parts is meant, `addresses` where all
    of them are.
    """

    folder: str
    made: str
    parts: Sequence[int]
    number: int
    step: Step | None = None
    order: Order | None = None  # for whose sake, if it is new
    addresses: Mapping[int, Address] = field(default_factory=dict)


@dataclass(frozen=True)
class Post:
    """Letters, as bytes, with their senders and receivers, that were written in the step with this `number`."""

    folder: str
    made: str
    number: int
    letters: Sequence[tuple[int, int, bytes]]


@dataclass(frozen=True)
class Answer:
    """What a part says after a step. Or that it is `lost`."""

    part: int
    report: Report | None = None
    done: Done | None = None
    lost: str = ""


@dataclass
class _Hosted:
    member: Member
    files: PartFiles
    epoch: int
    segment: str
    base: Base | None
    letters: dict[int, bytes] = field(default_factory=dict)  # to whom, of the last step
    mail: list[tuple[int, int, bytes]] = field(default_factory=list)  # what has come: the number of its step, from whom
    entries: list[Entry] = field(default_factory=list)
    finished: list[tuple[Entry, EpochWork]] = field(default_factory=list)
    at: int = -1
    exchanges: int = 0
    shipped: int = 0
    shipped_bytes: int = 0
    warnings: list[tuple[type[Warning], str]] = field(default_factory=list)
    follower: Follower | None = None


class _House:
    """What a process holds of one making: its parts, and the words of values, which are the same in all of them."""

    def __init__(self, secret: bytes, host: str) -> None:
        self.parts: dict[int, _Hosted] = {}
        self.shared = Shared()
        self.addresses: Mapping[int, Address] = {}
        self.mail = Lock()
        self.lines = Lines(secret)
        self.office = Office(secret, host, answer)

    def close(self) -> None:
        self.office.close()
        self.lines.close()


_houses: dict[tuple[str, str], _House] = {}
_lock = Lock()  # one thing at a time happens to the parts of a process, but letters may come meanwhile


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
        return house.office.address


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


# -- what happens to them ---------------------------------------------------------------------------------------------


def answer(said: Request | Post) -> list[Answer] | str:
    """What a caller is answered, in the process that has the parts."""
    return _delivered(said) if isinstance(said, Post) else perform(said)


def _delivered(post: Post) -> str:
    """Why letters could not be; empty if they have been."""
    house = _houses.get((post.folder, post.made))
    return "the parts are not there any more" if house is None else _put(house, post.number, post.letters)


def _put(house: _House, number: int, letters: Sequence[tuple[int, int, bytes]]) -> str:
    with house.mail:
        for sender, receiver, content in letters:
            if receiver not in house.parts:
                return _gone(receiver)
            house.parts[receiver].mail.append((number, sender, content))
    return ""


def perform(request: Request) -> list[Answer]:
    """What a request asks for."""
    with _lock:
        house = _houses.get((request.folder, request.made))
        if house is None:
            return [Answer(part, lost=_gone(part)) for part in request.parts]
        if request.addresses:
            house.addresses = request.addresses
        with parallel.on_one_core():  # other parts have the others
            answers = [_answer(house, request, part) for part in request.parts]
        problem = _sent(house, request)
        return [replace(each, lost=problem) for each in answers] if problem else answers


def _gone(part: int) -> str:
    return f"part {part} is not there any more"


def _answer(house: _House, request: Request, part: int) -> Answer:
    hosted = house.parts.get(part)
    if hosted is None:
        return Answer(part, lost=_gone(part))
    with told_warnings() as told:
        try:
            found = _performed(house, hosted, request)
        except EXPECTED as error:
            # It has stopped half-way, and with it the others are of no use.
            del house.parts[part]
            failed = hosted.epoch + max(1, hosted.at + 1)
            found = Answer(part, done=Done(part, failed=failed, error=error))
    hosted.warnings += told
    return found if found.done is None else replace(found, done=_signed(found.done, hosted))


def _sent(house: _House, request: Request) -> str:
    """Brings the letters of a step to whom they are for; why that could not be done, or empty."""
    posts: dict[Address, list[tuple[int, int, bytes]]] = {}
    for part in request.parts:
        if part in house.parts:
            hosted = house.parts[part]
            letters, hosted.letters = hosted.letters, {}
            for receiver, content in letters.items():
                posts.setdefault(house.addresses[receiver], []).append((part, receiver, content))
    problem = _put(house, request.number, posts.pop(house.office.address, []))
    try:
        calls = {
            address: Post(request.folder, request.made, request.number, letters) for address, letters in posts.items()
        }
        return next(filter(None, house.lines.call_all(calls)), problem)
    except Unreachable as error:
        return f"the process that had another part {error}"


def _signed(done: Done, hosted: _Hosted) -> Done:
    told, hosted.warnings = hosted.warnings, []
    return replace(done, worker=f"{socket.gethostname()}:{os.getpid()}", remembered=True, warnings=told)


def _performed(house: _House, hosted: _Hosted, request: Request) -> Answer:
    order, part = request.order, hosted.member.part
    if order is not None:
        if order.action is not Action.BEGIN and hosted.segment != order.segments[part]:
            return Answer(part, lost=f"part {part} has come to an epoch that was never committed")
        store = PartedStore(order.folder, hosted.files.store.program, order.manifest, None)
        hosted.files = replace(hosted.files, store=store)
    with house.mail:
        come = [each for each in hosted.mail if each[0] < request.number]
        hosted.mail = [each for each in hosted.mail if each[0] >= request.number]
    for _, sender, data in sorted(come, key=lambda each: each[:2]):
        hosted.member.receive(sender, decode_letter(data, hosted.member.node.program))
    match request.step:
        case Begin():
            assert order is not None
            return _told(hosted, _begin(hosted, request.step, order))
        case Turn():
            return _told(hosted, hosted.member.turn(request.step))
        case Final.WRITE:
            return _write(hosted)
        case _:
            assert order is not None
            return Answer(part, done=_act(hosted, order))


def _begin(hosted: _Hosted, step: Begin, order: Order) -> Report:
    if hosted.at >= 0:
        _finish(hosted)
    hosted.at, hosted.exchanges, hosted.shipped, hosted.shipped_bytes = step.at, 0, 0, 0
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
    hosted.letters = {part: encode_letter(letter, program) for part, letter in hosted.member.letters().items()}
    hosted.shipped_bytes += sum(map(len, hosted.letters.values()))
    return Answer(hosted.member.part, report)


def _finish(hosted: _Hosted) -> None:
    changes = hosted.member.finish()
    entry = hosted.entries[hosted.at]
    shown = hosted.files.shown(changes)
    follow, node = hosted.files.job.follow, hosted.member.node
    if follow is not None and hosted.follower is None:
        hosted.follower = follow(node)
    work = hosted.files.work(entry, changes, shown, node.last_epoch, hosted.follower)
    work = replace(work, exchanges=hosted.exchanges, shipped=hosted.shipped, shipped_bytes=hosted.shipped_bytes)
    hosted.finished.append((replace(entry, changes=shown), work))


def _write(hosted: _Hosted) -> Answer:
    part = hosted.member.part
    if hosted.at < 0:
        hosted.member.finish()
        return Answer(part, done=_measured(hosted, Done(part)))
    _finish(hosted)
    finished, hosted.finished, hosted.entries, hosted.at = hosted.finished, [], [], -1
    entries = [entry for entry, _ in finished]
    hosted.segment = hosted.files.store.write_segment(part, entries).name
    hosted.epoch = entries[-1].epoch
    return Answer(
        part, done=_measured(hosted, Done(part, segment=hosted.segment, epochs=[work for _, work in finished]))
    )


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
