"""The server: who may ask, what it answers, and what happens is told to all who listen."""

from __future__ import annotations

import json
import signal
import ssl
import subprocess
import time
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from threading import RLock, Thread
from urllib.request import Request, urlopen

import pytest
from tests.serve.asking import Client

from whence import Session, Update, load
from whence.provenance.base import parse_fact
from whence.serve import Bind, NotSafe, ServedSession, serve
from whence.serve.apart import Apart, TooBusy, TooLate
from whence.serve.guard import HEADERS
from whence.serve.history import History

PROGRAM = load(
    """.decl link(x:symbol, y:symbol) .input link
    .decl reach(x:symbol, y:symbol) .output reach
    r1 reach(x, y) :- link(x, y).
    r2 reach(x, z) :- reach(x, y), link(y, z)."""
)
HOSTILE = [
    "<script>alert(1)</script>",
    '"></td><img src=x onerror=alert(1)>',
    "a\x00b\x1b[31m",
    "\u202etxt.exe",
    "a\\\"b'",
    "é\U0001f600",
]


@pytest.fixture(scope="module")
def page() -> Iterator[ServedSession]:
    session = Session(PROGRAM, facts={"link": [("a", "b"), ("b", "c")]})
    with serve(session, writable=True, name="test") as served:
        yield served


@pytest.fixture
def client(page: ServedSession) -> Client:
    return Client(page)


# -- who may ask


def test_without_the_token_nothing_is_answered(client: Client) -> None:
    for path in ("/", "/main.js", "/lib/d3.min.js", "/api/about", "/api/events", "/api/openapi.json", "/nothing"):
        status, _, text = client.send("GET", path, known=False)
        assert status == 401, path
        assert "token is missing" in text.decode()
    assert client.send("GET", "/api/about", headers={"Authorization": "Bearer wrong"}, known=False)[0] == 401
    assert client.send("GET", "/?token=wrong", known=False)[0] == 401
    assert client.send("POST", "/api/updates", body={"updates": []}, known=False)[0] == 401


def test_the_address_gives_a_cookie_that_other_sites_cannot_use(client: Client) -> None:
    status, headers, _ = client.send("GET", f"/?token={client.server.token}", known=False)
    assert (status, headers["location"]) == (303, "/")
    cookie, *settings = headers["set-cookie"].split("; ")
    assert {each.lower() for each in settings} == {"httponly", "path=/", "samesite=strict"}
    assert client.send("GET", "/api/about", headers={"Cookie": cookie}, known=False)[0] == 200
    other = cookie.replace(str(client.server.port), "1")
    assert client.send("GET", "/api/about", headers={"Cookie": other}, known=False)[0] == 401


def test_other_names_and_other_sites_are_refused(client: Client) -> None:
    own = f"127.0.0.1:{client.server.port}"
    for headers, expected in [
        ({"Host": "evil.example"}, 421),
        ({"Host": f"evil.example:{client.server.port}"}, 421),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": f"https://{own}"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Origin": f"http://{own}", "Sec-Fetch-Site": "same-origin"}, 200),
    ]:
        assert client.send("GET", "/api/about", headers=headers)[0] == expected, headers
    update = {"updates": [{"op": "+", "fact": 'link("x", "y")'}]}
    assert client.send("POST", "/api/updates", body=update, headers={"Origin": "https://evil.example"})[0] == 403
    # What a form of another site could send without asking.
    assert client.send("POST", "/api/updates", body=update, headers={"Content-Type": "text/plain"})[0] == 415
    assert client.send("POST", "/api/updates", body={"updates": "x" * (1 << 20)})[0] == 413


def test_every_answer_has_a_strict_policy(client: Client) -> None:
    for path, known in (("/", True), ("/api/about", True), ("/nothing", True), ("/api/about", False)):
        headers = {name.lower(): value for name, value in client.send("GET", path, known=known)[1].items()}
        for name, value in HEADERS.items():
            assert headers[name.lower()] == value
    policy = HEADERS["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy


def test_files_outside_are_not_served(client: Client) -> None:
    for path in ("/../app.py", "/%2e%2e/app.py", "/lib/..%2f..%2f..%2fpyvenv.cfg", "/api/dashboard/images/..%2fapp.py"):
        assert client.send("GET", path)[0] == 404


@pytest.mark.parametrize("given", [{}, {"token": "0123456789abcdef"}, {"token": "short", "host": "127.0.0.1"}])
def test_other_machines_need_a_token_and_tls(given: dict[str, str]) -> None:
    with pytest.raises(NotSafe):
        Bind(**{"host": "0.0.0.0", **given})  # type: ignore[arg-type]


def test_tls(tmp_path: Path) -> None:
    certificate, key = tmp_path / "c.pem", tmp_path / "k.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost", "-days", "1",
         "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(certificate)],
        check=True, capture_output=True,
    )  # fmt: skip
    bind = Bind("0.0.0.0", 0, "0123456789abcdef", certificate, key, ("127.0.0.1",))
    with serve(Session(PROGRAM), bind=bind) as served:
        trusted = ssl.create_default_context(cafile=certificate)
        address = f"https://127.0.0.1:{served.port}/api/about"
        asked = Request(address, headers={"Authorization": "Bearer 0123456789abcdef"})
        with urlopen(asked, context=trusted, timeout=20) as answer:
            assert json.load(answer)["name"] == "session"


# -- views


def test_views_are_described(client: Client) -> None:
    about = client.get("about")
    assert (about["name"], about["writable"]) == ("test", True)
    link, reach = about["views"]
    assert (link["name"], link["base"], reach["output"]) == ("link", True, True)
    assert reach["columns"] == [{"name": "x", "type": "symbol"}, {"name": "y", "type": "symbol"}]
    assert reach["graph"] == {"from": 0, "to": 1, "declared": False}


def test_rows_are_sorted_filtered_and_paged(client: Client) -> None:
    found = client.get("views/reach", sort="-y", limit=2)
    assert [row["cells"] for row in found["rows"]] == [["b", "c"], ["a", "c"]]
    assert found["total"] == 3
    assert client.get("views/reach", where=["x=a", "y!=b"])["rows"] == [
        {"fact": 'reach("a", "c")', "cells": ["a", "c"]}
    ]
    assert client.get("views/reach", search="B", offset=1)["rows"][0]["cells"] == ["b", "c"]


def test_what_does_not_fit_is_refused_with_the_reason(client: Client) -> None:
    assert client.refused("views/rech") == (404, "there is no view rech; there are link, reach")
    assert client.refused("views/reach", sort="z") == (400, "reach has no column z; it has x, y")
    assert client.refused("views/reach", where="z=1") == (400, "there is no column z; there are x, y")
    assert client.refused("views/reach", epoch=99)[0] == 410
    assert client.refused("views/reach/difference", **{"from": 0, "to": 99})[0] == 410
    assert client.refused("questions/why", fact="reach(")[0] == 422
    assert client.refused("questions/why", fact='reach("a", "z")')[0] == 422
    assert client.refused("questions/whom", fact='reach("a", "z")')[0] == 422
    assert client.refused("views/reach/series", value="x") == (400, "x is not a column of numbers")


def test_hostile_values_come_back_as_they_are() -> None:
    rows = {(one, other) for one in HOSTILE for other in HOSTILE[:2]}
    with serve(Session(PROGRAM, facts={"link": rows})) as served:
        client = Client(served)
        found = client.get("views/link")["rows"]
        assert {parse_fact(row["fact"], PROGRAM).tuple for row in found} == rows
        for row in found[:4]:
            answer = client.get("questions/why", fact=row["fact"].replace("link", "reach", 1))
            assert answer["asked"]["tuple"] == list(parse_fact(row["fact"], PROGRAM).tuple)


# -- what happens


def test_epochs_are_told_to_all_who_listen_and_caught_up_with(page: ServedSession, client: Client) -> None:
    listening = [client.events("reach"), client.events()]
    for events in listening:
        assert next(events)[0] == "hello"
        assert next(events)[2]["changed"] == {}
    page.apply([Update("+", "link", ("c", "d"))])
    name, identity, data = next(listening[0])
    assert (name, data["changed"]) == ("epochs", {"link": [1, 0], "reach": [3, 0]})
    assert {tuple(row["cells"]) for row in data["changes"]["reach"]["added"]} == {("a", "d"), ("b", "d"), ("c", "d")}
    assert data["sizes"] == {"link": 3, "reach": 6}
    assert next(listening[1])[2]["changes"] == {}
    page.apply([Update("-", "link", ("c", "d"))])
    again = client.events("link", last=identity)
    assert next(again)[2]["resumed"]
    assert next(again)[2]["changes"]["link"]["gone"][0]["cells"] == ["c", "d"]
    anew = client.events("link", last="another-3")
    assert not next(anew)[2]["resumed"]
    for events in (*listening, again, anew):
        events.close()


def test_a_viewer_who_was_away_too_long_is_told_to_begin_anew() -> None:
    session = Session(PROGRAM)
    with serve(session) as served:
        served.live.history = History(0, max_rows=1)
        events = Client(served).events("link")
        assert [next(events)[0], next(events)[0]] == ["hello", "epochs"]
        served.apply([Update("+", "link", (str(each), "x")) for each in range(3)])
        assert next(events)[0] == "reset"
        events.close()


def test_epochs_and_status_are_told(page: ServedSession, client: Client) -> None:
    page.apply([Update("+", "link", ("q", "r"))])
    page.apply([Update("-", "link", ("q", "r"))])
    found = client.get("epochs", last=2)
    assert [each["inserted"] for each in found["epochs"]] == [1, 0]
    assert found["sizes"]["link"][-2] == found["sizes"]["link"][-1] + 1
    status = client.get("status")
    assert status["bytes"]["reach"] > 0
    assert status["memory"] > 0
    assert client.get("dead-letters") == {"count": 0, "letters": []}


def test_series_are_what_the_views_were() -> None:
    program = load(".decl m(room:symbol, t:number) .input m .output m")
    with serve(Session(program)) as served:
        client = Client(served)
        served.apply([Update("+", "m", ("a", 3)), Update("+", "m", ("b", 5))])
        served.apply([Update("-", "m", ("a", 3)), Update("+", "m", ("a", 4))])
        assert client.get("views/m/series", value="t", by="room")["lines"] == {"a": [3, 4], "b": [5, 5]}
        assert client.get("views/m/series")["lines"] == {"m": [2, 2]}


def test_the_past_is_shown_and_asked_about() -> None:
    with serve(Session(PROGRAM, facts={"link": [("a", "b")]})) as served:
        client = Client(served)
        served.apply([Update("+", "link", ("b", "c"))])
        served.apply([Update("-", "link", ("a", "b"))])
        assert client.get("views/reach", epoch=1)["total"] == 3
        assert client.get("views/reach", epoch=0)["rows"][0]["cells"] == ["a", "b"]
        difference = client.get("views/reach/difference", **{"from": 0, "to": 2})
        assert ([row["cells"] for row in difference["added"]], difference["total"]) == ([["b", "c"]], 2)
        assert client.get("questions/why", fact='reach("a", "c")', epoch=1)["proofs"]
        assert client.refused("questions/why", fact='reach("a", "c")')[0] == 422
        assert client.get("questions/whynot", fact='reach("a", "c")')["repairs"]
        assert set(served.live.session.relation("reach")) == {("b", "c")}, "questions change nothing"


def test_tables_and_views_of_sql_are_shown_and_asked_about_as_they_were() -> None:
    text = """CREATE TABLE t(a BIGINT, s TEXT); CREATE TABLE k(id BIGINT PRIMARY KEY CHECK (id > 0));
        CREATE VIEW v AS WITH w AS (SELECT s, a + 1 AS b FROM t) SELECT s, b FROM w WHERE b < 9;"""
    with serve(Session(load(text, dialect="sql"), facts={"t": [(1, "x")]})) as served:
        client = Client(served)
        assert [each["name"] for each in client.get("about")["views"]] == ["t", "k", "w", "v"]
        served.apply([Update("+", "t", (1, "x")), Update("+", "k", (1,))])
        served.apply([Update("-", "t", (1, "x"))] * 2)
        counts = client.get("questions/how", fact='v("x", 2)', epoch=1)["values"]
        assert counts["polynomial"] == '2*t(1, "x")'
        steps = client.get("questions/why", fact='w("x", 2)', epoch=1)["proofs"][0]["steps"]
        assert [each["text"] for each in steps][:1] == ['t(1, "x")']
        told = client.get("questions/whynot", fact='v("x", 2)')
        assert told["repairs"][0]["insert"][0]["text"] == 't(1, "x")'
        assert told["attempts"][0]["missing"] == ['w("x", 2)']
        assert set(client.get("questions/whatif", fact='t(1, "x")')["counts"]) == {"t", "w", "v"}


# -- questions


def test_questions_are_answered(client: Client) -> None:
    fact = 'reach("a", "c")'
    assert client.get("questions/why", fact=fact)["proofs"][0]["steps"][-1]["text"] == fact
    graph = client.get("questions/graph", fact=fact)
    assert graph["picture"].startswith("<svg")
    assert len(graph["graph"]["derivations"]) == 2
    assert client.get("questions/how", fact=fact)["values"]["posbool"] == '{{link("a", "b"), link("b", "c")}}'
    shares = client.get("questions/responsibility", fact=fact)["contributions"]
    assert [each["shapley"] for each in shares] == [0.5, 0.5]
    assert client.get("questions/probability", fact=fact, chance="link=0.5")["low"] == 0.25
    counts = client.get("questions/whatif", fact='link("a", "b")')["counts"]
    assert counts == {"link": {"+": 0, "-": 1}, "reach": {"+": 0, "-": 2}}
    repairs = client.get("questions/whynot", fact='reach("c", "a")')["repairs"]
    assert repairs[0]["insert"][0]["text"] == 'link("c", "a")'


def test_a_question_that_takes_too_long_is_stopped_and_epochs_go_on() -> None:
    apart = Apart(seconds=0.3)
    lock = RLock()

    def forever() -> bytes:
        signal.signal(signal.SIGALRM, signal.SIG_IGN)
        while True:
            pass

    failures: list[str] = []

    def ask() -> None:
        try:
            apart.run(lock, forever)
        except TooLate as error:
            failures.append(str(error))

    asking = Thread(target=ask)
    asking.start()
    time.sleep(0.1)
    assert lock.acquire(timeout=1), "the lock is held for the fork only"
    lock.release()
    asking.join(10)
    assert failures == ["it took more than 0.3 s"]


def test_more_questions_than_can_wait_are_refused() -> None:
    apart = Apart(at_once=1, waiting=0, seconds=5)

    def wait() -> bytes:
        time.sleep(1.5)
        return b"done"

    answers: list[bytes] = []
    asking = Thread(target=lambda: answers.append(apart.run(nullcontext(), wait)))
    asking.start()
    time.sleep(0.2)
    with pytest.raises(TooBusy):
        apart.run(nullcontext(), wait)
    asking.join(10)
    assert answers == [b"done"]


def test_what_a_copy_does_is_not_seen() -> None:
    session = Session(PROGRAM)

    def change() -> bytes:
        session.apply([Update("+", "link", ("a", "b"))])
        return str(len(session.relation("link"))).encode()

    assert Apart().run(nullcontext(), change) == b"1"
    assert len(session.relation("link")) == 0


# -- updates


def test_updates_are_applied_where_viewers_may_write(page: ServedSession, client: Client) -> None:
    before = page.live.epoch
    status, done = client.post(
        [{"op": "+", "fact": 'link("m", "n")'}, {"op": "+", "relation": "link", "tuple": ["n", "o"]}]
    )
    assert (status, done["epoch"], done["inserted"]) == (200, before + 1, 3)
    assert ("m", "o") in page.live.session.relation("reach")
    assert client.post([{"op": "-", "fact": 'link("m", "n")'}, {"op": "-", "fact": 'link("n", "o")'}])[0] == 200
    for wrong, reason in [
        ({"op": "+", "fact": 'reach("m", "n")'}, "reach is derived by rules"),
        ({"op": "+", "relation": "link", "tuple": ["n"]}, "1 values, but 2 expected"),
        ({"op": "+", "relation": "lnk", "tuple": ["n"]}, "lnk"),
    ]:
        status, found = client.post([wrong])
        assert status == 400
        assert reason in found["error"]
    assert client.post([{"op": "*", "fact": 'link("m", "n")'}])[0] == 422


def test_a_page_is_for_looking_unless_told() -> None:
    with serve(Session(PROGRAM)) as served:
        status, found = Client(served).post([{"op": "+", "fact": 'link("m", "n")'}])
        assert status == 403
        assert "--writable" in found["detail"]


def test_openapi_describes_what_can_be_asked(client: Client) -> None:
    found = client.get("openapi.json")
    assert set(found["paths"]) == {
        "/api/about",
        "/api/views/{view}",
        "/api/views/{view}/difference",
        "/api/views/{view}/series",
        "/api/status",
        "/api/epochs",
        "/api/dead-letters",
        "/api/events",
        "/api/questions/{kind}",
        "/api/updates",
        "/api/dashboard",
        "/api/dashboard/images/{name}",
    }
    described = [each for path in found["paths"].values() for each in path.values()]
    assert all(each["description"] for each in described)
    page = found["components"]["schemas"]["Page"]["properties"]
    assert set(page) == {"epoch", "total", "offset", "rows"}
