"""The broker that librdkafka has built in for tests.

It speaks Kafka's protocol on a socket and lives as long as the producer that started it. Every topic is there, with four
partitions. It knows no retention and no compaction, and its transactions leave no markers.
"""

from __future__ import annotations

from confluent_kafka import Producer


class Broker:
    def __init__(self) -> None:
        self.producer = Producer({"bootstrap.servers": "of its own", "test.mock.num.brokers": 1, "log_level": 0})
        found = self.producer.list_topics(timeout=10).brokers.values()
        self.address = ",".join(f"{broker.host}:{broker.port}" for broker in found)

    def send(self, topic: str, *values: str, partition: int = 0) -> None:
        for value in values:
            self.producer.produce(topic, value, key="k", partition=partition, timestamp=1_700_000_000_123)
        assert self.producer.flush(10) == 0
