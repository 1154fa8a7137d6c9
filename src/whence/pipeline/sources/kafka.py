"""A streaming source for Spark that reads Kafka topics through librdkafka: it needs no jar.

Offsets are Kafka's own, for each topic and partition the next message to read. Spark keeps them in its checkpoint and Kafka is
told nothing, so that every message is read exactly once whatever happens to the process.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from whence.pipeline.extras import extra
from whence.pipeline.sources.topics import SECONDS_TO_ANSWER, Watermarks, find_watermarks, open_consumer

with extra("kafka"):
    from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

FETCHED_AT_ONCE = 1000

Offsets = dict[str, dict[str, int]]


class KafkaSource(DataSource):
    """`spark.readStream.format("whence-kafka")`: a row for each message, with the columns of Spark's own Kafka source.

    Options: `subscribe` (topics, with commas between them), `kafka.bootstrap.servers`, and every other setting of librdkafka
    after `kafka.`; if wanted `startingOffsets` (`earliest`, which is the default, or `latest`) and `maxOffsetsPerTrigger`.
    """

    @classmethod
    def name(cls) -> str:
        return "whence-kafka"

    def schema(self) -> str:
        return "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp"

    def streamReader(self, schema: StructType) -> KafkaReader:  # noqa: ARG002 - it is always the one above
        return KafkaReader(_Options(self.options))


class _Options:
    """The options of the source, checked."""

    def __init__(self, options: Mapping[str, str]) -> None:
        missing = [name for name in ("subscribe", "kafka.bootstrap.servers") if not options.get(name)]
        if missing:
            raise ValueError(f"whence-kafka needs the option {' and '.join(missing)}")
        self.topics = [topic.strip() for topic in options["subscribe"].split(",")]
        self.settings = {
            name.removeprefix("kafka."): value for name, value in options.items() if name.startswith("kafka.")
        }
        self.starting = options.get("startingOffsets", "earliest")
        if self.starting not in ("earliest", "latest"):
            raise ValueError(f"startingOffsets is earliest or latest, not {self.starting!r}")
        most = options.get("maxOffsetsPerTrigger")
        if most is not None and not (most.isascii() and most.isdigit() and int(most)):
            raise ValueError(f"maxOffsetsPerTrigger is a number of messages, 1 or more, not {most!r}")
        self.most = int(most) if most else None

    def consumer(self, settings: Mapping[str, str | bool] | None = None) -> Consumer:
        return open_consumer({**self.settings, **(settings or {})})


class _Range(InputPartition):
    """Messages of a partition from `start` up to, but not including, `end`."""

    def __init__(self, topic: str, partition: int, start: int | None, end: int) -> None:
        self.topic = topic
        self.partition = partition
        self.start = start  # none: the earliest
        self.end = end


class KafkaReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(self, options: _Options) -> None:
        self._options = options
        self._consumer: Consumer | None = None
        self._target: Offsets | None = None

    def initialOffset(self) -> Offsets:
        at_end = self._options.starting == "latest"
        return {
            topic: {partition: high if at_end else low for partition, (low, high) in found.items()}
            for topic, found in self._watermarks().items()
        }

    def latestOffset(self, start: Offsets, limit: ReadLimit) -> Offsets:
        end = self._target or self._latest()
        return _limited(start, end, limit.max_rows) if isinstance(limit, ReadMaxRows) else end

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxRows(self._options.most) if self._options.most else ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        self._target = self._latest()

    def partitions(self, start: Offsets, end: Offsets) -> Sequence[InputPartition]:
        return [
            _Range(topic, int(partition), start.get(topic, {}).get(partition), last)
            for topic, found in end.items()
            for partition, last in found.items()
            if start.get(topic, {}).get(partition, 0) < last
        ]

    def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:
        assert isinstance(partition, _Range)
        # A partition that is new is read from its beginning; elsewhere a missing message is an error, never skipped.
        reset = "earliest" if partition.start is None else "error"
        consumer = self._options.consumer({"auto.offset.reset": reset, "enable.partition.eof": True})
        try:
            consumer.assign([TopicPartition(partition.topic, partition.partition, partition.start or 0)])
            yield from map(_row, _messages(consumer, partition))
        finally:
            consumer.close()

    def stop(self) -> None:
        if self._consumer is not None:
            self._consumer.close()

    def _latest(self) -> Offsets:
        return {
            topic: {partition: high for partition, (_, high) in found.items()}
            for topic, found in self._watermarks().items()
        }

    def _watermarks(self) -> Watermarks:
        if self._consumer is None:
            self._consumer = self._options.consumer()
        return find_watermarks(self._consumer, self._options.topics)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_consumer": None}  # connections stay where they are


def _messages(consumer: Consumer, wanted: _Range) -> Iterator[Message]:
    while True:
        first = consumer.poll(SECONDS_TO_ANSWER)
        if first is None:
            raise RuntimeError(
                f"no message of {wanted.topic}, partition {wanted.partition}, came within {SECONDS_TO_ANSWER:.0f} seconds, "
                f"though there are some up to offset {wanted.end}"
            )
        # What else is there already; asking for many at once and waiting would wait for all of them.
        for message in [first, *consumer.consume(FETCHED_AT_ONCE, timeout=0)]:
            error = message.error()
            # Transaction markers and compaction leave offsets without a message, also at the end.
            if error is not None and error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 - its public name
                return
            if error is not None and error.code() == KafkaError._AUTO_OFFSET_RESET:  # noqa: SLF001
                raise RuntimeError(
                    f"messages of {wanted.topic}, partition {wanted.partition}, from offset {wanted.start} on are gone: Kafka "
                    "deleted them before they were read. Start the query anew, with a state of its own"
                )
            if error is not None:
                raise KafkaException(error)
            at = message.offset()
            assert at is not None
            if at < wanted.end:
                yield message
            if at >= wanted.end - 1:
                return


def _row(message: Message) -> tuple[Any, ...]:
    _, milliseconds = message.timestamp()
    when = datetime.fromtimestamp(milliseconds / 1000, UTC) if milliseconds >= 0 else None
    return message.key(), message.value(), message.topic(), message.partition(), message.offset(), when


def _limited(start: Offsets, end: Offsets, most: int) -> Offsets:
    """Ends that add up to no more than `most` messages: each partition gets its share of what is waiting.

    >>> _limited({"t": {"0": 0, "1": 5}}, {"t": {"0": 90, "1": 15}}, 10)
    {'t': {'0': 9, '1': 6}}
    """
    waiting = {
        (topic, partition): last - start.get(topic, {}).get(partition, 0)
        for topic, found in end.items()
        for partition, last in found.items()
    }
    total = sum(waiting.values())
    if total <= most:
        return end
    shares = {place: most * count // total for place, count in waiting.items()}
    spare = most - sum(shares.values())
    for place in sorted(waiting, key=lambda place: most * waiting[place] % total, reverse=True)[:spare]:
        shares[place] += 1
    return {
        topic: {partition: start.get(topic, {}).get(partition, 0) + shares[topic, partition] for partition in found}
        for topic, found in end.items()
    }
