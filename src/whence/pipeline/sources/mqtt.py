"""Topics of an MQTT broker whose messages are update records, as a source.

The broker keeps a session for the state: what comes while nobody listens waits there. A message is acknowledged once the epoch
with it has been applied, so that none is lost; after a crash the broker repeats those that were not acknowledged yet, and a
repeated record changes nothing (the last one for a tuple decides).
"""

from __future__ import annotations

import queue
from collections.abc import Callable, Iterator, Sequence
from hashlib import blake2b
from typing import Any

from whence.io import FactError
from whence.io.changes import Epoch, Position
from whence.io.updates import POLL, Schema
from whence.pipeline.epochs import EpochCutter
from whence.pipeline.extras import extra
from whence.pipeline.records import Bury, NumberedLine, cut_epochs
from whence.pipeline.sources import Source

with extra("mqtt"):
    from paho.mqtt.client import Client, ConnectFlags, MQTTMessage
    from paho.mqtt.enums import CallbackAPIVersion
    from paho.mqtt.reasoncodes import ReasonCode

_SECONDS_TO_ANSWER = 10.0
_AT_LEAST_ONCE = 1


class MqttSource(Source):
    """The messages of topics, which may have wildcards (`building/+/seat`), in the order in which they come.

    A message holds records, one a line. Without one for `pause` seconds the epoch ends; without `follow` the run does, too.
    """

    def __init__(
        self,
        address: tuple[str, int],
        topics: Sequence[str],
        schema: Schema,
        bury: Bury,
        *,
        size: int | None = None,
        follow: bool = False,
        pause: float = POLL,
        stopped: Callable[[], bool] = lambda: False,
    ) -> None:
        self._address = address
        self._topics = topics
        self._schema = schema
        self._bury = bury
        self._size = size
        self._follow = follow
        self._pause = pause
        self._stopped = stopped
        self._inbox: queue.SimpleQueue[MQTTMessage | FactError | None] = queue.SimpleQueue()
        self._client: Client | None = None
        self._taken: list[MQTTMessage] = []  # since the last epoch
        self._count = 0
        self._topic = ""

    def epochs(self, begin: Position) -> Iterator[Epoch]:
        self._count = int(begin.get("messages", 0))
        self._client = self._connected(str(begin.get("session") or self._name()))
        cutter = EpochCutter(self._place, self._size, was_cut=bool(begin.get("cut")))
        letters = cut_epochs(
            self._lines(), cutter, self._schema, lambda letter, _: self._bury(letter, {"file": self._topic})
        )
        for epoch in letters:
            applied, self._taken = self._taken, []
            yield epoch
            for message in applied:  # who asks for the next epoch has applied this one
                self._client.ack(message.mid, message.qos)

    def close(self) -> None:
        if self._client is not None:
            self._client.disconnect()
            self._client.loop_stop()

    def _place(self) -> Position:
        return {"messages": self._count, "session": self._name()}

    def _name(self) -> str:
        """The session's name at the broker: the same for the same topics, so that the broker knows what is still to come."""
        words = "\n".join((*map(str, self._address), *self._topics))
        return f"whence-{blake2b(words.encode(), digest_size=6).hexdigest()}"

    def _connected(self, name: str) -> Client:
        client = Client(CallbackAPIVersion.VERSION2, client_id=name, clean_session=False, manual_ack=True)
        client.on_connect = self._on_connect
        client.on_message = lambda _client, _data, message: self._inbox.put(message)
        host, port = self._address
        try:
            client.connect(host, port, keepalive=30)
        except OSError as error:
            raise FactError([f"cannot reach the broker at {host}:{port}: {error.strerror or error}"]) from None
        client.loop_start()
        try:
            answer = self._inbox.get(timeout=_SECONDS_TO_ANSWER)
        except queue.Empty:
            answer = FactError([f"the broker at {host}:{port} does not answer"])
        if isinstance(answer, FactError):
            client.loop_stop()
            raise answer
        return client

    def _on_connect(self, client: Client, _data: Any, _flags: ConnectFlags, reason: ReasonCode, _more: Any) -> None:
        """Also when the connection was lost and is there again."""
        if reason.is_failure:
            self._inbox.put(FactError([f"the broker refuses the connection: {reason}"]))
            return
        client.subscribe([(topic, _AT_LEAST_ONCE) for topic in self._topics])
        self._inbox.put(None)

    def _lines(self) -> Iterator[NumberedLine | None]:
        while not self._stopped():
            try:
                message = self._inbox.get(timeout=self._pause)
            except queue.Empty:
                yield None
                if not self._follow:
                    return
                continue
            if isinstance(message, FactError):
                raise message
            if message is not None:
                self._count += 1
                self._topic = message.topic
                self._taken.append(message)
                for text in message.payload.splitlines():
                    yield NumberedLine(self._count, bytes(text))
