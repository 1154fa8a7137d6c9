"""Every message is read once."""

from __future__ import annotations

import pickle

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable
from pyspark.sql.types import StructType
from tests.pipeline.sources.broker import Broker

from whence.pipeline.sources import kafka
from whence.pipeline.sources.kafka import KafkaReader, KafkaSource, Offsets

EVERYTHING = ReadAllAvailable()


@pytest.fixture(scope="module")
def broker() -> Broker:
    return Broker()


def _reader(broker: Broker, topics: str, **options: str) -> KafkaReader:
    source = KafkaSource({"kafka.bootstrap.servers": broker.address, "subscribe": topics, **options})
    return source.streamReader(StructType())


def _read(reader: KafkaReader, start: Offsets, end: Offsets) -> list[str]:
    # As Spark does it: the reader goes to the tasks as bytes.
    elsewhere = pickle.loads(pickle.dumps(reader))
    return [row[1].decode() for part in reader.partitions(start, end) for row in elsewhere.read(part)]


def test_messages_arrive_once_and_in_the_order_of_their_partition(broker: Broker) -> None:
    broker.send("once", *(f"a{n}" for n in range(2500)))
    broker.send("once", "b0", "b1", partition=1)
    reader = _reader(broker, "once")
    start = reader.initialOffset()
    assert start == {"once": {"0": 0, "1": 0, "2": 0, "3": 0}}
    middle = reader.latestOffset(start, EVERYTHING)
    assert _read(reader, start, middle) == [*(f"a{n}" for n in range(2500)), "b0", "b1"]
    assert reader.partitions(middle, reader.latestOffset(middle, EVERYTHING)) == []
    broker.send("once", "c", partition=1)
    end = reader.latestOffset(middle, EVERYTHING)
    assert _read(reader, middle, end) == ["c"]
    assert _read(reader, start, middle)[-1] == "b1", "a range that is read again is the same, whatever came since"
    reader.stop()


def test_a_row_has_the_columns_of_a_message(broker: Broker) -> None:
    broker.send("columns", "v", partition=2)
    reader = _reader(broker, "columns")
    start = reader.initialOffset()
    (part,) = reader.partitions(start, reader.latestOffset(start, EVERYTHING))
    ((key, value, topic, partition, offset, when),) = reader.read(part)
    assert (key, value, topic, partition, offset) == (b"k", b"v", "columns", 2, 0)
    assert when.timestamp() == 1_700_000_000.123
    reader.stop()


def test_several_topics_are_read(broker: Broker) -> None:
    broker.send("one", "1")
    broker.send("two", "2")
    reader = _reader(broker, "one, two")
    start = reader.initialOffset()
    assert sorted(_read(reader, start, reader.latestOffset(start, EVERYTHING))) == ["1", "2"]
    reader.stop()


def test_latest_begins_with_what_comes_next(broker: Broker) -> None:
    broker.send("news", "old")
    reader = _reader(broker, "news", startingOffsets="latest")
    start = reader.initialOffset()
    broker.send("news", "new")
    assert _read(reader, start, reader.latestOffset(start, EVERYTHING)) == ["new"]
    reader.stop()


def test_epochs_can_be_limited(broker: Broker) -> None:
    broker.send("many", *map(str, range(90)))
    broker.send("many", *map(str, range(90, 100)), partition=3)
    reader = _reader(broker, "many", maxOffsetsPerTrigger="30")
    limit = reader.getDefaultReadLimit()
    offset, sizes, rows = reader.initialOffset(), [], []
    while (end := reader.latestOffset(offset, limit)) != offset:
        got = _read(reader, offset, end)
        sizes.append(len(got))
        rows += got
        offset = end
    assert sizes == [30, 30, 30, 10]
    assert sorted(map(int, rows)) == list(range(100))
    reader.stop()


def test_available_now_stops_at_what_is_there(broker: Broker) -> None:
    broker.send("now", "early")
    reader = _reader(broker, "now")
    reader.prepareForTriggerAvailableNow()
    broker.send("now", "late")
    start = reader.initialOffset()
    end = reader.latestOffset(start, EVERYTHING)
    assert _read(reader, start, end) == ["early"]
    assert reader.latestOffset(end, EVERYTHING) == end
    reader.stop()


def test_a_partition_that_is_new_is_read_from_its_beginning(broker: Broker) -> None:
    broker.send("grown", "first")
    broker.send("grown", "in the new one", partition=3)
    reader = _reader(broker, "grown")
    before = {"grown": {"0": 1, "1": 0, "2": 0}}
    assert _read(reader, before, reader.latestOffset(before, EVERYTHING)) == ["in the new one"]
    reader.stop()


def test_messages_that_are_gone_are_an_error_and_not_skipped(broker: Broker) -> None:
    broker.send("gone", "x")
    reader = _reader(broker, "gone")
    # Beyond the end is out of range as deleted messages are.
    with pytest.raises(RuntimeError, match="from offset 7 on are gone"):
        _read(reader, {"gone": {"0": 7}}, {"gone": {"0": 9}})
    reader.stop()


def test_a_broker_that_does_not_answer_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka, "SECONDS_TO_ANSWER", 0.5)
    reader = KafkaSource(
        {"kafka.bootstrap.servers": "127.0.0.1:1", "subscribe": "t", "kafka.log_level": "0"}
    ).streamReader(StructType())
    with pytest.raises(kafka.KafkaException, match="Failed to get metadata"):
        reader.initialOffset()
    reader.stop()


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"subscribe": "t"}, "needs the option kafka.bootstrap.servers"),
        ({"kafka.bootstrap.servers": "x"}, "needs the option subscribe"),
        ({"kafka.bootstrap.servers": "x", "subscribe": "t", "startingOffsets": "5"}, "earliest or latest, not '5'"),
        ({"kafka.bootstrap.servers": "x", "subscribe": "t", "maxOffsetsPerTrigger": "0"}, "1 or more, not '0'"),
    ],
)
def test_wrong_options_are_named(options: dict[str, str], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        KafkaSource(options).streamReader(StructType())
