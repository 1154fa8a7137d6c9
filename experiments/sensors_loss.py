"""Shortest-path trees while messages are lost: figures 4 and 5(a) of the paper on sensor networks."""

from __future__ import annotations

from fields import HOP, levels, radio_field, wrong_levels
from harness import Claim, Experiment, Results, run

from whence.runtime import Channel

NODES = 50
FIELDS = 8  # for each seed, so that a point is not one field's luck


def measure(scheme: str, loss: float, seed: int) -> dict[str, float]:
    jitter = 1.5 if "1.5" in scheme else 0.2
    wrong, sent = [], []
    for number in range(FIELDS):
        field = radio_field(NODES, 100 * seed + number)
        found, messages = levels(
            scheme, field, Channel(latency=HOP, jitter=jitter * HOP, loss=loss / 100), 100 * seed + number
        )
        wrong.append(wrong_levels(found, field))
        sent.append(messages / NODES)
    return {"wrong levels": 100 * sum(wrong) / FIELDS, "messages": sum(sent) / FIELDS}


def compared(results: Results, jitter: str) -> str:
    pairs = []
    for point in results.points:
        ours, theirs = (
            results.median(f"{name}, jitter {jitter}", point, "wrong levels") for name in ("logicJ", "flood")
        )
        assert ours is not None
        assert theirs is not None
        pairs.append(f"{point:g} %: {ours:.3g} to {theirs:.3g}")
    return "; ".join(pairs)


EXPERIMENT = Experiment(
    name="sensors_loss",
    title="Shortest-path trees while messages are lost",
    question=(
        f"The fields of sensors_tree with {NODES} nodes ({FIELDS} fields for each seed). Every receiver misses a "
        "message with the given "
        "chance, by itself. Jitter is in hops. With retransmission, what is not acknowledged is sent again."
    ),
    schemes=(
        "flood, jitter 0.2",
        "logicJ, jitter 0.2",
        "flood, jitter 1.5",
        "logicJ, jitter 1.5",
        "logicJ, retransmission, jitter 1.5",
    ),
    across="lost messages, %",
    points=(0, 10, 20, 30, 40),
    metrics={"wrong levels": "%", "messages": "a node"},
    measure=measure,
    claims=[
        Claim("wrong levels of logicJ at or below the flood's, jitter 0.2", lambda results: compared(results, "0.2")),
        Claim("wrong levels of logicJ at or below the flood's, jitter 1.5", lambda results: compared(results, "1.5")),
        Claim(
            "retransmission reaches 0",
            lambda results: ", ".join(
                f"{results.median('logicJ, retransmission, jitter 1.5', point, 'wrong levels'):g}"
                for point in results.points
            ),
        ),
    ],
    cut_off=600,
    logarithmic=False,
)

if __name__ == "__main__":
    run(EXPERIMENT)
