"""Links fail one at a time: figure 13 of the dissertation, 11 of the article."""

from __future__ import annotations

from statistics import mean, median

from harness import Claim, Experiment, run
from networks import Run, check_reachable, links_down, links_up, run_of

from whence.network import EpochFigures
from whence.topology import Link, TransitStub, fail_alone, transit_stub

FAILURES = 12
OF_DRED = 2  # which does the same whatever fails, and takes long


PROCESSORS = 12
HANDLING = 0.0001  # seconds that a processor takes for a message
EVERY_LINK = "support, every link"


def measure(scheme: str, degree: float, seed: int) -> dict[str, float]:
    network = transit_stub(seed=seed, degree=int(degree))
    strategy = scheme.partition(", ")[0]
    made = run_of(strategy, network, seed=seed)
    inserted, failures, repairs = _failures(made, network, _failing(scheme, network, seed))
    # The same failures on a few processors of one building, each of which has some of the nodes.
    near = run_of(strategy, network, seed=seed, processors=PROCESSORS, handling=HANDLING)
    _, near_failures, _ = _failures(near, network, _failing("dred", network, seed))
    both = mean(each.traffic.bytes for each in failures) + mean(each.traffic.bytes for each in repairs)
    return {
        "messages": mean(each.traffic.messages for each in failures),
        "messages, median": median(each.traffic.messages for each in failures),
        "tuples": mean(each.traffic.tuples for each in failures),
        "traffic": mean(each.traffic.bytes for each in failures) / 1000,
        "time to converge": mean(each.seconds for each in failures),
        "time on processors": 1000 * mean(each.seconds for each in near_failures),
        "traffic in all": (inserted.traffic.bytes + FAILURES * both) / 1000,
        "state": inserted.state_bytes / 1000,
    }


def _failing(scheme: str, network: TransitStub, seed: int) -> list[Link]:
    if scheme == EVERY_LINK:
        return list(network.links)
    epochs = 2 * (OF_DRED if scheme == "dred" else FAILURES)
    return [link for changes in fail_alone(network.links, seed=seed, epochs=epochs) for link in changes.failed]


def _failures(
    made: Run, network: TransitStub, links: list[Link]
) -> tuple[EpochFigures, list[EpochFigures], list[EpochFigures]]:
    """All links come up; then some fail, each repaired before the next one does."""
    inserted = made.apply(links_up(network.links))
    failures, repairs = [], []
    for link in links:
        failures.append(made.apply(links_down([link])))
        check_reachable(made, set(network.links) - {link})
        repairs.append(made.apply(links_up([link])))
    return inserted, failures, repairs


EXPERIMENT = Experiment(
    name="fig13_deletions",
    title="Links fail, each by itself",
    question=(
        f"Reachability on transit-stub networks of 100 nodes, dense (4 links a node) and sparse (2). {FAILURES} links fail, each "
        "is repaired before the next one does; the means of the failures, the traffic of everything, insertions and repairs "
        f"included, and the state of all nodes after the insertions. For DRed it is {OF_DRED} links, which stand for all; for "
        "support also every link of the network. Times are simulated: over the links of the network, up to 50 ms each, where "
        f"nodes compute in no time; and with the nodes on {PROCESSORS} processors, 1 ms apart, that take "
        f"{1000 * HANDLING:g} ms for each message ({OF_DRED} failures)."
    ),
    schemes=("support", EVERY_LINK, "dred", "absorption lazy", "relative lazy"),
    across="links a node",
    points=(2, 4),
    metrics={
        "messages": "a failure",
        "messages, median": "of the failures",
        "tuples": "shipped a failure",
        "traffic": "kB a failure",
        "time to converge": "s a failure",
        "time on processors": "ms a failure",
        "traffic in all": "kB",
        "state": "kB",
    },
    measure=measure,
    claims=[
        Claim(
            "DRed is an order of magnitude worse in traffic and time than absorption",
            lambda results: (
                f"against absorption lazy: {results.ratio('dred', 'absorption lazy', 'messages')} the messages, "
                f"{results.ratio('dred', 'absorption lazy', 'traffic')} the bytes, "
                f"{results.ratio('dred', 'absorption lazy', 'time to converge')} the time over links, "
                f"{results.ratio('dred', 'absorption lazy', 'time on processors')} the time on processors; against support: "
                f"{results.ratio('dred', 'support', 'messages')}, {results.ratio('dred', 'support', 'traffic')}, "
                f"{results.ratio('dred', 'support', 'time to converge')}, "
                f"{results.ratio('dred', 'support', 'time on processors')}"
            ),
        ),
        Claim(
            "ours: support needs 100 times fewer messages than DRed",
            lambda results: (
                f"{results.ratio('dred', 'support', 'messages')} in the mean of the failures, of which some cut the network in "
                f"two, {results.ratio('dred', 'support', 'messages, median')} in the median; "
                f"{results.ratio('dred', 'support', 'tuples')} the tuples; over every link "
                f"{results.ratio('dred', EVERY_LINK, 'messages')} the messages and "
                f"{results.ratio('dred', EVERY_LINK, 'tuples')} the tuples"
            ),
        ),
        Claim(
            "relative provenance beats DRed and loses to absorption",
            lambda results: (
                f"{results.ratio('relative lazy', 'absorption lazy', 'traffic')} the bytes of absorption lazy and "
                f"{results.ratio('relative lazy', 'absorption lazy', 'state')} its state; "
                f"DRed has {results.ratio('dred', 'relative lazy', 'traffic')} its bytes"
            ),
        ),
        Claim(
            "ours: support ships less than lazy absorption in all, keeps less, and is within 2x of it in deletions",
            lambda results: (
                f"{results.ratio('support', 'absorption lazy', 'traffic in all')} the bytes in all, "
                f"{results.ratio('support', 'absorption lazy', 'state')} the state, "
                f"{results.ratio('support', 'absorption lazy', 'traffic')} the bytes of a failure"
            ),
        ),
    ],
    cut_off=400,
    of_processor=True,
    logarithmic=True,
)

if __name__ == "__main__":
    run(EXPERIMENT)
