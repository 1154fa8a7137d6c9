"""Pages that are looked at: the difference to the last look, in every form, and pages that are not what they should be."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import islice
from typing import Any

import pytest

from whence import load
from whence.io import FactError
from whence.io.changes import Epoch, Position
from whence.io.updates import DeadLetter
from whence.pipeline.sources.polled import Poll, PolledSource

PROGRAM = load(
    ".decl power(outlet:symbol, watts:number) .input power .decl meeting(location:symbol, start:float, end:float) .input meeting"
    " .decl q(o:symbol) q(o) :- power(o, w), w > 100. .output q"
)
FORMS = {
    "json": '[["a", 5], {"outlet": "b & c", "watts": 200}]',
    "csv": 'watts,outlet,note\n5,a,x\n200,"b & c",\n',
    "html": """<html><table><tr><td>menu</table><h1>PDU</h1><table border=1>
        <tr><th>Outlet</th><th>Watts<th>State</tr><tr><td>a<td> 5 <td>on<tr><td>b &amp; c</td><td><b>200</b></td></tr></table>""",
}


class Page:
    """A web server with one page, whose text is what it is at the moment."""

    def __init__(self) -> None:
        page = self
        self.text: str | None = ""
        self.coming: list[str | None] = []  # one after the other, before the text

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                text = page.coming.pop(0) if page.coming else page.text
                self.send_response(200 if text is not None else 503)
                self.end_headers()
                self.wfile.write((text or "").encode())

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}/pdu"


@pytest.fixture
def page() -> Iterator[Page]:
    made = Page()
    yield made
    made.server.shutdown()
    made.server.server_close()


def source(page: Page, form: str, letters: list[str], relation: str = "power", **more: Any) -> PolledSource:
    def bury(letter: DeadLetter, place: Position) -> None:
        letters.append(letter.reason)
        assert place["file"] == page.url

    poll = Poll.named(f"poll+{page.url}#relation={relation}&format={form}&every=0.01")
    return PolledSource(poll, PROGRAM, bury, **more)


def rows(epoch: Epoch) -> set[tuple[object, ...]]:
    return {(each.op, *each.tuple) for each in epoch.updates}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_the_same_table(page: Page, form: str) -> None:
    page.text = FORMS[form]
    (epoch,) = source(page, form, []).epochs({})
    assert rows(epoch) == {("+", "a", 5), ("+", "b & c", 200)}
    assert list(source(page, form, []).epochs(epoch.source)) == []


def test_looks_find_differences_and_go_on(page: Page) -> None:
    letters: list[str] = []
    page.text = "outlet,watts\na,1\nb,2\n"
    looking = source(page, "csv", letters, follow=True).epochs({})
    assert rows(next(looking)) == {("+", "a", 1), ("+", "b", 2)}
    page.text = "outlet,watts\nb,3\nc,4\n"
    second = next(looking)
    assert rows(second) == {("-", "a", 1), ("-", "b", 2), ("+", "b", 3), ("+", "c", 4)}
    page.text = "outlet,watts\nc,4\n"
    again = source(page, "csv", letters, follow=True).epochs(second.source)
    assert rows(next(again)) == {("-", "b", 3)}
    assert letters == []


def test_a_page_that_is_wrong_changes_nothing(page: Page) -> None:
    letters: list[str] = []
    texts = ["outlet,watts\na,1\n", None, "", "outlet\na\n", "outlet,watts\na,many\n", "outlet,watts\na,2\n"]
    page.coming = list(texts)
    looking = source(page, "csv", letters, follow=True).epochs({})
    assert [rows(each) for each in islice(looking, 2)] == [{("+", "a", 1)}, {("-", "a", 1), ("+", "a", 2)}]
    assert [reason.split(":")[0] for reason in letters] == [
        "cannot read it",
        "it is empty",
        "it has no column watts",
        "'many' is not a number",
    ]


def test_calendars(page: Page) -> None:
    page.text = "\r\n".join(
        [
            "BEGIN:VCALENDAR",
            "VERSION:2.0",
            "PRODID:-//t//t//EN",
            "BEGIN:VEVENT",
            "UID:1",
            "DTSTART:20260101T090000Z",
            "DTEND:20260101T100000Z",
            "LOCATION:R1",
            "RRULE:FREQ=WEEKLY;COUNT=2",
            "END:VEVENT",
            "BEGIN:VEVENT",
            "UID:2",
            "DTSTART;VALUE=DATE:20260102",
            "LOCATION:R2",
            "END:VEVENT",
            "END:VCALENDAR",
            "",
        ]
    )
    (epoch,) = source(page, "ics", [], relation="meeting").epochs({})
    nine = 1767258000.0
    week = 7 * 86400
    assert rows(epoch) == {
        ("+", "R1", nine, nine + 3600),
        ("+", "R1", nine + week, nine + week + 3600),
        ("+", "R2", 1767312000.0, 1767312000.0 + 86400),
    }
    letters: list[str] = []
    page.text = page.text.replace("FREQ=WEEKLY;COUNT=2", "FREQ=MONTHLY")
    assert list(source(page, "ics", letters, relation="meeting").epochs({})) == []
    assert "FREQ=MONTHLY are not understood" in letters[0]


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("poll+http://x/y", "a page is named"),
        ("poll+http://x/y#relation=r&often=3", "a page is named"),
        ("poll+http://x/y#relation=r&format=pdf", "pdf is not a format"),
        ("poll+http://x/y.csv#relation=r&every=0", "every= is a number of seconds"),
    ],
)
def test_names_that_are_wrong(name: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        Poll.named(name)


def test_a_relation_that_takes_nothing(page: Page) -> None:
    with pytest.raises(FactError, match="which is not a base relation"):
        source(page, "csv", [], relation="q")
