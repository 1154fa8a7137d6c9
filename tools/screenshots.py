"""Makes the pictures of docs/page.md: `make screenshots`.

Serves examples/railway and looks at it with Chromium: in light and dark colours, and on a phone.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from pathlib import Path
from typing import NamedTuple

from playwright.sync_api import Browser, Page, sync_playwright

from whence import Session, Update, load_file
from whence.serve import ServedSession, read_dashboard, serve

ROOT = Path(__file__).parents[1]
EXAMPLE = ROOT / "examples" / "railway"
DESK, PHONE = {"width": 1200, "height": 760}, {"width": 390, "height": 780}


class Picture(NamedTuple):
    """What to look at, in which colours, on what, and what has to be there before it is drawn."""

    name: str
    place: str
    colours: str
    size: dict[str, int]
    sign: str


PICTURES = (
    Picture("page-dashboard", "#/", "light", DESK, ".widget canvas[data-nodes]"),
    Picture(
        "page-why",
        '#/view/fastest?sort=-minutes&ask=why&fact=fastest("Bern", "Chur", 135)',
        "dark",
        DESK,
        "#panel .proof",
    ),
    Picture("page-graph", "#/view/ride?as=graph&colour=state", "light", DESK, ".legend span"),
    Picture(
        "page-whatif", '#/view/track?ask=whatif&fact=track("Olten", "Zurich", 32)', "light", DESK, "#panel .counts li"
    ),
    Picture("page-phone", "#/", "light", PHONE, ".widget canvas[data-nodes]"),
    Picture("page-phone-why", '#/view/leg?ask=why&fact=leg("Olten", "Zurich")', "dark", PHONE, "#panel .proof"),
)


def happen(page: ServedSession) -> None:
    updates: list[Update] = []
    for line in (EXAMPLE / "updates.jsonl").read_text().splitlines():
        record = json.loads(line)
        if "commit" in record:
            page.apply(updates)
            updates = []
            time.sleep(0.12)  # so that there is something to be seen over time
        else:
            updates.append(Update(record["op"], record["relation"], tuple(record["tuple"])))


def take(browser: Browser, page: ServedSession, picture: Picture) -> None:
    context = browser.new_context(viewport=picture.size, color_scheme=picture.colours)  # type: ignore[arg-type]
    tab: Page = context.new_page()
    tab.goto(page.address + picture.place)
    tab.wait_for_selector(picture.sign)
    tab.wait_for_timeout(1500)
    tab.screenshot(path=ROOT / "docs" / f"{picture.name}.png")
    context.close()


def main() -> None:
    os.chdir(ROOT)  # rules are shown with their places, which are those of this folder
    program = load_file(EXAMPLE.relative_to(ROOT) / "program.dl")
    board = read_dashboard(EXAMPLE / "program.dashboard.toml", program.relations, frozenset(program.base_relations))
    path = shutil.which("chromium") or shutil.which("google-chrome")
    with (
        serve(Session(program), dashboard=board, writable=True, name="railway") as page,
        sync_playwright() as playwright,
    ):
        happen(page)
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        for each in PICTURES:
            take(browser, page, each)
        browser.close()


if __name__ == "__main__":
    main()
