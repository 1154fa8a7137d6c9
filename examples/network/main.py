"""Keeps the views of program.dl current while links of a generated network fail and are repaired.

    python examples/network/main.py [--epochs N] [--seed N] [--out DIR]

Prints a line for each epoch, then what the worst failure did, and draws it.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from report import Outcome, print_damage, print_summary, write_picture
from rich.console import Console

from whence import Session, Update, load_file
from whence.network import Epoch, Link, fail_and_repair, transit_stub

HERE = Path(__file__).parent


def main() -> None:
    options = _options()
    console = Console(highlight=False)
    network = transit_stub(seed=options.seed)
    console.print(f"A network of {len(network.nodes)} nodes and {len(network.links)} links, seed {options.seed}")

    session = Session(load_file(HERE / "program.dl"))
    stream = [Epoch((), network.links), *fail_and_repair(network.links, seed=options.seed, epochs=options.epochs)]
    outcomes: list[Outcome] = []
    down: set[Link] = set(network.links)
    for number, happened in enumerate(stream):
        start = time.perf_counter()
        changes = session.apply([Update(op, "link", row) for op, row in happened.updates()])
        outcomes.append(Outcome(number, happened, changes, (time.perf_counter() - start) * 1000))
        console.print(_line(outcomes[-1]))

    failures = outcomes[1:]
    print_summary(console, failures)
    worst = max(failures, key=lambda outcome: outcome.damage)
    print_damage(console, worst, len(network.nodes))
    for outcome in outcomes[: worst.number]:
        down = (down | set(outcome.happened.failed)) - set(outcome.happened.repaired)
    options.out.mkdir(parents=True, exist_ok=True)
    write_picture(options.out / "network.svg", network, worst, down - set(worst.happened.repaired))
    console.print(f"\nThe picture: {options.out / 'network.svg'}")


def _line(outcome: Outcome) -> str:
    what = str(outcome) if outcome.number else f"{len(outcome.happened.repaired)} links come up"
    return f"epoch {outcome.number:3}  {outcome.ms:7,.0f} ms  {outcome.changed():7,} changes  {what}"


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Views over a network whose links fail and are repaired.")
    parser.add_argument("--epochs", type=int, default=40, help="how many epochs of failures and repairs")
    parser.add_argument("--seed", type=int, default=1, help="decides the network and its failures")
    parser.add_argument("--out", type=Path, default=Path("build/network"), help="the folder for the picture")
    return parser.parse_args()


if __name__ == "__main__":
    main()
