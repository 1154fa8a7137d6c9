"""Keeps the views of program.dl current, on Spark, while links of a generated network fail and are repaired.

    python examples/network/main.py [--epochs N] [--seed N] [--out FOLDER]

Prints a line for each epoch, then which failures did most harm, and draws the worst one.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
from pathlib import Path

from report import Outcome, Report
from rich.console import Console

from whence import Changes, load_file
from whence.spark import CallbackSink, EpochReport, maintain, running_spark
from whence.topology import LinkChanges, fail_and_repair, transit_stub

HERE = Path(__file__).parent
LINK = "op string, src string, dst string, ms bigint, mbps bigint"


def main() -> None:
    options = _options()
    network = transit_stub(seed=options.seed)
    stream = [LinkChanges((), network.links), *fail_and_repair(network.links, seed=options.seed, epochs=options.epochs)]
    report = Report(Console(highlight=False), network)
    report.print_network(options.seed)

    for folder in ("updates", "state"):
        shutil.rmtree(options.out / folder, ignore_errors=True)
    write_updates(stream, options.out / "updates")

    changed: dict[int, Changes] = {}

    def show(epoch: EpochReport) -> None:
        report.add(Outcome(epoch.epoch, stream[epoch.epoch - 1], changed.pop(epoch.epoch), epoch.seconds * 1000))

    log = options.out / "spark.log"
    report.console.print(f"Spark starts; its log is {log}.\n", soft_wrap=True)
    with running_spark("local[*]", log) as spark:
        links = spark.readStream.schema(LINK).option("maxFilesPerTrigger", 1).json(str(options.out / "updates"))
        views = maintain(
            load_file(HERE / "program.dl"),
            {"link": links},
            state=options.out / "state",
            sinks=[CallbackSink(changed.__setitem__)],
            on_epoch=show,
            once=True,
        )
        views.await_termination()
        report.print_summary([batch["durationMs"]["triggerExecution"] for batch in views.query.recentProgress])
    report.draw_worst(options.out)


def write_updates(stream: list[LinkChanges], folder: Path) -> None:
    """A file for each epoch. Spark takes files in the order of their times, so each is a second younger than the one before."""
    folder.mkdir(parents=True)
    for number, epoch in enumerate(stream):
        path = folder / f"{number:04}.json"
        names = ("op", "src", "dst", "ms", "mbps")
        updates = (json.dumps(dict(zip(names, (op, *row), strict=True))) for op, row in epoch.updates())
        path.write_text("\n".join(updates), encoding="utf-8")
        os.utime(path, (number, number))


def _positive(text: str) -> int:
    if not text.isdigit() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text} is not 1 or more")
    return int(text)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Views over a network whose links fail and are repaired.")
    parser.add_argument("--epochs", type=_positive, default=30, help="how many epochs of failures and repairs")
    parser.add_argument("--seed", type=int, default=1, help="decides the network and its failures")
    parser.add_argument("--out", type=Path, default=Path("build/network"), help="where updates, state and picture go")
    return parser.parse_args()


if __name__ == "__main__":
    main()
