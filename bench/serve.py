"""What a page costs: a closure of 3.2 million rows under 10 epochs a second, with five viewers and without.

    .venv-bench/bin/python bench/serve.py [--small]

Writes results/serve.md. The pipeline and the server share a process, as in `whence serve`. Viewers are processes of their own
that ask what the page asks: events of the view, and its table again whenever it changed. Phases with and without them take turns.
What is on the page, and when, is measured in Chromium. `--small` is for trying it out, and writes nothing.
"""

from __future__ import annotations

import http.client
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from measure import Report, percentile
from why import gnm

from whence import Session, Update, load
from whence.serve import ServedSession, serve

CLOSURE = """
.decl link(x:symbol, y:symbol)
.input link
.decl reach(x:symbol, y:symbol)
.output reach
reach(x, y) :- link(x, y).
reach(x, z) :- reach(x, y), link(y, z).
"""
PACE = 0.1
VIEWERS = 5


# -- a viewer


def view(port: int, token: str) -> None:
    """Asks as the page does, until it is stopped."""
    headers = {"Authorization": f"Bearer {token}"}
    listening = http.client.HTTPConnection("127.0.0.1", port)
    asking = http.client.HTTPConnection("127.0.0.1", port)

    def ask(path: str) -> Any:
        asking.close()  # the server closes connections that are idle for seconds
        asking.request("GET", path, headers=headers)
        return json.loads(asking.getresponse().read())

    for path in ("/api/about", "/api/epochs?last=60", "/api/views/reach?limit=100"):
        ask(path)
    listening.request("GET", "/api/events?views=reach", headers=headers)
    events = listening.getresponse()
    due = 0.0
    while line := events.readline():
        if not line.startswith(b"data: ") or "reach" not in json.loads(line[6:]).get("changed", {}):
            continue
        now = time.monotonic()
        if now >= due:
            ask("/api/views/reach?limit=100")
            took = time.monotonic() - now
            due = time.monotonic() + max(0.06, 5 * took)


@contextmanager
def viewers(page: ServedSession, number: int) -> Iterator[None]:
    command = [sys.executable, __file__, "--view", str(page.port), page.token]
    # In life they are on machines of their own: here they get what the pipeline and the server leave of two cores.
    started = [subprocess.Popen(command, preexec_fn=lambda: os.nice(19)) for _ in range(number)]  # noqa: PLW1509 - one thread asks
    while page.served.events.viewers < number:
        time.sleep(0.05)
    time.sleep(1)
    yield
    for each in started:
        each.kill()
        each.wait()
    while page.served.events.viewers:
        page.live.tell()
        time.sleep(0.05)


# -- the pipeline


class Pipeline:
    """Takes the only link to some node away, so that nobody reaches it, and puts it back in the next epoch."""

    def __init__(self, page: ServedSession, links: list[tuple[str, str]]) -> None:
        self.page = page
        into = Counter(target for _, target in links)
        self.links = [link for link in links if into[link[1]] == 1]
        self.rng = random.Random(3)
        self.gone: tuple[str, str] | None = None

    def epoch(self) -> float:
        """How long it took."""
        if self.gone is None:
            self.gone = self.rng.choice(self.links)
            update = Update("-", "link", self.gone)
        else:
            update = Update("+", "link", self.gone)
            self.gone = None
        started = time.perf_counter()
        self.page.apply([update])
        return time.perf_counter() - started

    def paced(self, epochs: int) -> list[float]:
        times = []
        begin = time.perf_counter()
        for number in range(epochs):
            times.append(self.epoch())
            time.sleep(max(0.0, begin + (number + 1) * PACE - time.perf_counter()))
        return times


WATCH = """() => {
  window.seen = [];
  let last = null;
  const look = () => {
    const now = document.querySelector("#main .content")?.dataset.epoch;
    if (now && now !== last) { last = now; window.seen.push([Number(now), Date.now() / 1000]); }
    requestAnimationFrame(look);
  };
  look();
}"""
WATCH_CHANGES = """() => {
  window.seen = [];
  let last = null;
  const look = () => {
    const text = document.querySelector("#main .changes li small")?.textContent;
    const now = text && text.replaceAll(",", "").trim();
    if (now && now !== last) { last = now; window.seen.push([Number(now), Date.now() / 1000]); }
    requestAnimationFrame(look);
  };
  look();
}"""


def browse(pipeline: Pipeline, epochs: int) -> dict[str, Any]:
    """First paint, how late epochs are on the page, and its memory, while the pipeline goes on."""
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 - only here

    page = pipeline.page
    found: dict[str, Any] = {}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        tab = browser.new_context(viewport={"width": 1280, "height": 800}).new_page()
        started = time.perf_counter()
        tab.goto(page.address)
        tab.wait_for_selector("#main tbody tr")
        found["first"] = time.perf_counter() - started
        session = tab.context.new_cdp_session(tab)

        def heap() -> float:
            session.send("HeapProfiler.collectGarbage")
            return float(session.send("Runtime.getHeapUsage")["usedSize"])

        for name, place, watch in (
            ("table", "#/view/reach", WATCH),
            ("changes", "#/view/reach?as=changes", WATCH_CHANGES),
        ):
            tab.evaluate("place => { location.hash = place }", place)
            time.sleep(1)
            pipeline.paced(20)
            found[f"{name} before"] = heap()
            tab.evaluate(watch)
            begin = page.live.epoch
            pipeline.paced(epochs)
            time.sleep(1)
            committed = {each.epoch: each.at for each in page.live.history.between(begin, page.live.epoch)}
            seen = tab.evaluate("window.seen")
            found[name] = [at - committed[epoch] for epoch, at in seen if epoch in committed]
            found[f"{name} after"] = heap()
        browser.close()
    return found


def main() -> None:
    is_small = "--small" in sys.argv
    load_before = os.getloadavg()[0]
    size, epochs, phases = ((300, 750), 20, 2) if is_small else ((2_000, 5_000), 100, 6)
    links = [(f"n{one}", f"n{other}") for one, other in gnm(*size)]
    started = time.perf_counter()
    session = Session(load(CLOSURE), facts={"link": links})
    rows = len(session.relation("reach"))
    evaluated = time.perf_counter() - started
    with serve(session) as page:
        page.live.warm()
        pipeline = Pipeline(page, links)
        pipeline.paced(20)
        alone: list[float] = []
        watched: list[float] = []
        ratios = []
        for _ in range(phases):
            one = pipeline.paced(epochs)
            with viewers(page, VIEWERS):
                other = pipeline.paced(epochs)
            alone += one
            watched += other
            ratios.append(statistics.mean(other) / statistics.mean(one))
        changed = [len(each.changes) for each in page.live.history.newest(200)]
        browsed = browse(pipeline, epochs)
    report = _Printed() if is_small else Report("serve", "A page on a closure of 3.2 million rows")
    report.write(
        f"Closure of Gnm({size[0]:,},{size[1]:,}): {rows:,} rows, in {evaluated:.1f} s."
        f" Ten epochs a second take the only link to a node away and put it back,"
        f" which changes {statistics.median(changed):,.0f} rows (median),"
        f" {max(changed):,} at most."
        f" The load of the machine, of {os.cpu_count()} cores, was {load_before:.1f} before it began."
    )
    taken = statistics.mean(watched) / statistics.mean(alone) - 1
    late = {name: browsed[name] for name in ("table", "changes")}
    report.table(
        ["what", "measured", "bar"],
        [
            [f"taken from the pipeline by {VIEWERS} viewers: mean time of an epoch, with and without in turns",
             f"{taken:+.1%} ({statistics.mean(alone) * 1000:.2f} ms, {statistics.mean(watched) * 1000:.2f} ms; medians"
             f" {statistics.median(alone) * 1000:.2f}, {statistics.median(watched) * 1000:.2f}; of {len(ratios)} turns"
             f" {min(ratios) - 1:+.0%} to {max(ratios) - 1:+.0%})", "at most 10 %"],
            ["first paint: from the address to the first rows", f"{browsed['first']:.2f} s", "under 1 s"],
            *([f"an epoch's changes on the page after its commit ({name}): median, 95 %, {len(times)} seen",
               f"{statistics.median(times) * 1000:.0f} ms, {percentile(times, 0.95) * 1000:.0f} ms", "within 200 ms"]
              for name, times in late.items()),
            *([f"memory of the page's script ({name}), before and after {epochs} epochs",
               f"{browsed[f'{name} before'] / 1e6:.1f} MB, {browsed[f'{name} after'] / 1e6:.1f} MB", "bounded"] for name in late),
        ],
    )  # fmt: skip


class _Printed:
    def write(self, text: str) -> None:
        print(text)

    def table(self, header: list[str], rows: list[list[str]]) -> None:
        for row in [header, *rows]:
            print(" | ".join(row))


if __name__ == "__main__":
    if "--view" in sys.argv:
        view(int(sys.argv[2]), sys.argv[3])
    else:
        main()
