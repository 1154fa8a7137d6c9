"""A smart building in one command: servers, devices, views, and a page.

    python examples/building/main.py [--seconds N] [--steps N] [--seed N] [--port N]

Starts a broker, a database, the web page of a power strip and a calendar, fills them, lets people walk, sit and work, and serves
the views of building.dl until it is interrupted, or for so many steps.
"""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import psycopg
from devices import Building, Publisher, calendar_text
from floor import Floor, make_floor
from servers import Missing, broker, database, page

from whence.pipeline.sources.capture import capture_sql

HERE = Path(__file__).parent
PROGRAM = HERE / "building.dl"


@dataclass
class Running:
    """A building whose devices tell what happens, and where to listen to them."""

    building: Building
    sources: list[str]
    state: Path
    calendar: Path


@contextmanager
def running(seed: int = 1, every: float = 2.0) -> Iterator[Running]:
    """Servers with a building in them. `every` is how often, in seconds, pages are looked at."""
    floor = make_floor(seed)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="whence-building-")))
        port = stack.enter_context(broker())
        url = stack.enter_context(database())
        fill(url, floor)
        publisher = Publisher(port)
        stack.callback(publisher.close)
        building = Building(floor, publisher, seed)
        strip = stack.enter_context(page(building.power_page))
        calendar = folder / "meetings.ics"
        calendar.write_text(calendar_text(floor, building.begun, seed))
        metrics, profile = ((folder / "state" / name).as_uri() for name in ("metrics.json", "profile.json"))
        sources = [
            f"mqtt://127.0.0.1:{port}/building/#",
            url,
            f"poll+{strip}#relation=outlet&format=html&every={every}",
            f"poll+{calendar.as_uri()}#relation=meeting&every=60",
            f"poll+{metrics}#relation=engine_view&format=metrics&every={every}",
            f"poll+{metrics}#relation=engine_work&format=metrics&every={every}",
            f"poll+{profile}#relation=engine_rule&format=profile&every={every}",
            f"poll+{profile}#relation=engine_operator&format=profile&every={every}",
        ]
        yield Running(building, sources, folder / "state", calendar)


def fill(url: str, floor: Floor) -> None:
    """The tables, with their changes captured from now on."""
    with psycopg.connect(url, autocommit=True) as connection:
        for name, columns, rows in floor.tables():
            connection.execute(f"CREATE TABLE {name} ({columns})")  # type: ignore[call-overload]
            places = ", ".join(["%s"] * len(rows[0]))
            connection.cursor().executemany(f"INSERT INTO {name} VALUES ({places})", rows)  # type: ignore[arg-type]
        connection.execute(capture_sql([name for name, _, _ in floor.tables()]))  # type: ignore[call-overload]


def main() -> None:
    options = _options()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # servers are stopped, whoever ends this
    try:
        with running(options.seed) as here:
            words = [word for source in here.sources for word in ("--updates", source)]
            command = [sys.executable, "-m", "whence", "serve", str(PROGRAM), *words, "--writable", "--profile"]
            command += ["--state", str(here.state), "--port", str(options.port), "--epoch-size", "1000"]
            server = subprocess.Popen(command)
            try:
                live(here.building, server, options)
            finally:
                server.terminate()
                server.wait(30)
    except Missing as missing:
        sys.exit(str(missing))
    except KeyboardInterrupt:
        pass


def live(building: Building, server: subprocess.Popen[bytes], options: argparse.Namespace) -> None:
    time.sleep(3)  # the broker keeps what is published for those who have subscribed
    building.begin()
    while server.poll() is None and (options.steps is None or building.steps < options.steps):
        time.sleep(options.seconds)
        building.step()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=1.0, help="between two steps of the building (default: 1)")
    parser.add_argument("--steps", type=int, help="how many (default: until interrupted)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--port", type=int, default=8477, help="of the page")
    return parser.parse_args()


if __name__ == "__main__":
    main()
