"""How many sequences of epochs were run to their end and compared; told when the tests are over."""

from collections import Counter

ran: Counter[str] = Counter()


def count_sequence() -> None:
    ran["sequences"] += 1
