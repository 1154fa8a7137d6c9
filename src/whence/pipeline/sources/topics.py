"""Kafka topics whose messages are update records, as a source."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from uuid import uuid4

from whence.io import FactError
from whence.io.changes import Epoch, Position
from whence.io.updates import IDLE, Schema
from whence.pipeline.epochs import EpochCutter
from whence.pipeline.extras import extra
from whence.pipeline.records import Bury, NumberedLine, cut_epochs
from whence.pipeline.sources import Source

with extra("kafka"):
    from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

SECONDS_TO_ANSWER = 30.0
_FETCHED_AT_ONCE = 1000

# For each topic and partition the first offset and the one after the last.
Watermarks = dict[str, dict[str, tuple[int, int]]]


def open_consumer(settings: Mapping[str, str | bool]) -> Consumer:
    """A consumer that reads where it is told to, and commits nothing: the group that Kafka asks for has no meaning."""
    return Consumer({**settings, "group.id": f"whence-{uuid4()}", "enable.auto.commit": False})


def find_watermarks(consumer: Consumer, topics: Sequence[str]) -> Watermarks:
    """Messages of open transactions are not there yet."""
    found: Watermarks = {}
    for topic in topics:
        known = consumer.list_topics(topic, timeout=SECONDS_TO_ANSWER).topics[topic]
        if known.error is not None:
            raise RuntimeError(f"topic {topic}: {known.error.str()}")
        found[topic] = {
            str(number): consumer.get_watermark_offsets(TopicPartition(topic, number), timeout=SECONDS_TO_ANSWER)
            for number in sorted(known.partitions)
        }
    return found


class TopicSource(Source):
    """The messages of topics, in the order of each partition. Commits among them end epochs, and so does a pause.

    A position has, for each topic and partition, the offset of the next message. To `follow` is to wait for more.
    """

    def __init__(
        self,
        servers: str,
        topics: Sequence[str],
        schema: Schema,
        bury: Bury,
        *,
        size: int | None = None,
        follow: bool = False,
        stopped: Callable[[], bool] = lambda: False,
    ) -> None:
        self._servers = servers
        self._topics = topics
        self._schema = schema
        self._bury = bury
        self._size = size
        self._follow = follow
        self._stopped = stopped
        self._consumer: Consumer | None = None
        self._next: dict[tuple[str, str], int] = {}
        self._ends: dict[tuple[str, str], int] = {}
        self._last = ""  # the partition of the message that came last

    def epochs(self, begin: Position) -> Iterator[Epoch]:
        settings: dict[str, str | bool] = {
            "bootstrap.servers": self._servers,
            "auto.offset.reset": "error",
            "enable.partition.eof": True,
            "log_level": "0",
        }
        consumer = self._consumer = open_consumer(settings)
        try:
            marks = find_watermarks(consumer, self._topics)
        except (KafkaException, RuntimeError) as error:
            raise FactError([f"cannot read from Kafka at {self._servers}: {_reason(error)}"]) from None
        begun = begin.get("offsets", {})
        for topic, partitions in marks.items():
            for partition, (low, high) in partitions.items():
                at = begun.get(topic, {}).get(partition, low)
                if at < low:
                    problem = f"messages of {topic}, partition {partition}, from offset {at} on are gone"
                    raise FactError(
                        [problem], hints=["Kafka deleted them before they were read: start with a new state"]
                    )
                self._next[topic, partition] = at
                self._ends[topic, partition] = high
        consumer.assign([TopicPartition(topic, int(part), at) for (topic, part), at in self._next.items()])
        cutter = EpochCutter(self._place, self._size, was_cut=bool(begin.get("cut")))
        return cut_epochs(
            self._messages(consumer), cutter, self._schema, lambda letter, _: self._bury(letter, {"file": self._last})
        )

    def close(self) -> None:
        if self._consumer is not None:
            self._consumer.close()

    def _place(self) -> Position:
        offsets: dict[str, dict[str, int]] = {}
        for (topic, partition), at in self._next.items():
            offsets.setdefault(topic, {})[partition] = at
        return {"offsets": offsets}

    def _messages(self, consumer: Consumer) -> Iterator[NumberedLine | None]:
        while not self._stopped() and (self._follow or any(at < self._ends[each] for each, at in self._next.items())):
            first = consumer.poll(IDLE)
            if first is None:
                yield None
                continue
            # What else is there already; asking for many at once and waiting would wait for all of them.
            for message in [first, *consumer.consume(_FETCHED_AT_ONCE, timeout=0)]:
                if not self._passed(message):
                    yield self._line(message)

    def _passed(self, message: Message) -> bool:
        """Whether it is not a message, but the news that a partition ends here. Raises FactError."""
        error = message.error()
        if error is None:
            return False
        if error.code() != KafkaError._PARTITION_EOF:  # noqa: SLF001 - its public name
            raise FactError([f"cannot read from Kafka at {self._servers}: {error.str()}"])
        # Transaction markers and compaction leave offsets without a message, also at the end.
        place, at = _place_of(message)
        self._next[place] = max(self._next[place], at)
        return True

    def _line(self, message: Message) -> NumberedLine:
        place, at = _place_of(message)
        self._next[place] = at + 1
        self._last = "/".join(place)
        return NumberedLine(at, message.value() or b"")


def _place_of(message: Message) -> tuple[tuple[str, str], int]:
    topic, partition, at = message.topic(), message.partition(), message.offset()
    assert topic is not None
    assert partition is not None
    assert at is not None
    return (topic, str(partition)), at


def _reason(error: Exception) -> str:
    found = error.args[0] if error.args else error
    return found.str() if isinstance(found, KafkaError) else str(found)
