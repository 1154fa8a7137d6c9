"""The page of a derivation graph: complete, alone, and usable in a browser."""

from __future__ import annotations

import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest
from tests.provenance.test_export import LINKS, PROGRAM, ROOT

from whence import Session
from whence.provenance import Bounds, DerivationGraph, Fact, derivation_graph
from whence.provenance.page import to_html


class _Tags(HTMLParser):
    """The tags of a page, with their attributes; all that are opened are closed."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.stack: list[str] = []
        self.feed(page)
        assert not self.stack

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag != "meta":
            self.stack.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.stack.pop() == tag


def test_html_stands_alone_and_its_links_lead_somewhere() -> None:
    graph = derivation_graph(Session(PROGRAM, facts={"link": LINKS}), [ROOT])
    page = to_html(graph, PROGRAM)
    tags = _Tags(page).tags
    ids = {attributes["id"] for _, attributes in tags if "id" in attributes}
    links = [attributes["href"] for _, attributes in tags if "href" in attributes]
    assert {str(link) for link in links} <= {f"#{each}" for each in ids}
    assert not any("src" in attributes for _, attributes in tags)
    assert "url(" not in page
    entries = [attributes for tag, attributes in tags if tag == "details"]
    assert len(entries) == sum(map(bool, graph.derivations.values()))
    assert all("open" in attributes for attributes in entries)
    assert len(links) > len(entries)
    assert page.count("<li>") == sum(map(len, graph.derivations.values()))
    assert page.index("<summary><code>reach(&quot;a&quot;, &quot;&lt;") < page.index(
        "<summary><code>reach(&quot;a&quot;, &quot;c&"
    )


def test_html_says_what_was_cut() -> None:
    session = Session(PROGRAM, facts={"link": LINKS})
    page = to_html(derivation_graph(session, [ROOT], Bounds(depth=1)), PROGRAM)
    assert "<strong>Cut off at depth 1</strong>: 1 fact not looked into." in page
    assert '<span class="cut">not looked into</span>' in page


def test_html_of_a_base_fact_says_that_it_is_one() -> None:
    graph = derivation_graph(Session(PROGRAM, facts={"link": LINKS}), [Fact("link", ("a", "b"))])
    page = to_html(graph, PROGRAM)
    assert "A base fact: it was given, no rule made it." in page
    assert "<details" not in page


def long_chain() -> DerivationGraph:
    links = [(f"n{at}", f"n{at + 1}") for at in range(300)]
    return derivation_graph(Session(PROGRAM, facts={"link": links}), [Fact("reach", ("n0", "n300"))])


def test_html_draws_the_top_of_a_large_graph_and_lists_all() -> None:
    page = to_html(long_chain(), PROGRAM)
    tags = _Tags(page).tags
    assert sum(tag == "details" for tag, _ in tags) == 300
    assert sum(tag == "g" for tag, _ in tags) == 60 * 3 + 1
    assert "Only the 60 facts nearest to the top are drawn" in page
    assert sum("open" in attributes for _, attributes in tags) == 1


CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
# Presses the buttons of the page and writes down what became of it.
PRESSED = """
<script>
  const seen = [];
  const look = () => seen.push(document.querySelectorAll("details[open]").length);
  const width = () => seen.push(Math.round(document.querySelector("svg").getBoundingClientRect().width));
  look();
  document.querySelector('[data-open="1"]').click();
  look();
  document.querySelector('[data-open=""]').click();
  look();
  document.querySelector('[data-zoom="full"]').click();
  width();
  document.querySelector('[data-zoom="fit"]').click();
  width();
  addEventListener("hashchange", () => { look(); document.title = seen.join(" "); });
  document.querySelector(".picture a[href='#fact-7']").dispatchEvent(new MouseEvent("click", { bubbles: true }));
</script>
"""


@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium to open a page with")
def test_html_works_in_a_browser(tmp_path: Path) -> None:
    page = to_html(long_chain(), PROGRAM)
    width = re.search(r'<svg [^>]* width="(\d+)"', page)
    assert width is not None
    path = tmp_path / "page.html"
    path.write_text(page.replace("</body>", PRESSED + "</body>"), encoding="utf-8")
    options = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        f"--user-data-dir={tmp_path / 'profile'}",
        "--window-size=500,800",
    ]
    options += ["--enable-logging=stderr", "--virtual-time-budget=2000", "--dump-dom"]
    result = subprocess.run(
        [str(CHROMIUM), *options, path.as_uri()], capture_output=True, text=True, timeout=60, check=True
    )
    assert "CONSOLE" not in result.stderr
    title = re.search("<title>(.*?)</title>", result.stdout)
    assert title is not None
    at_first, opened, closed, full, fitting, followed = map(int, title[1].split())
    assert (at_first, opened, closed, followed) == (1, 300, 0, 1)
    assert full == int(width[1])
    assert fitting < full
