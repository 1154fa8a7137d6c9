"""The page in a browser: what a viewer sees and does, hostile values, and a server that goes and comes back."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from whence import Session, Update, load, load_file
from whence.serve import Bind, ServedSession, read_dashboard, serve

RAILWAY = Path(__file__).parents[2] / "examples" / "railway"
PROGRAM = load(
    """.decl link(x:symbol, y:symbol) .input link
    .decl spot(name:symbol, x:number, y:number) .input spot
    .decl reach(x:symbol, y:symbol) .output reach
    r1 reach(x, y) :- link(x, y).
    r2 reach(x, z) :- reach(x, y), link(y, z).
    .decl kind(name:symbol, is:symbol) .output kind
    kind(x, "end") :- link(_, x), !link(x, _).
    kind(x, "inner") :- link(x, _)."""
)
SPOTS = [("a", 0, 0), ("b", 10, 0), ("c", 10, 10), ("d", 0, 10)]
TOKEN = "0123456789abcdef0123"
SLOW = 30_000
expect.set_options(timeout=SLOW)  # machines may be busy


class Viewer:
    """A page that must not complain. What it may say on its console while the server is away is passed over."""

    def __init__(self, browser: Browser, **settings: object) -> None:
        self.context = browser.new_context(**settings)  # type: ignore[arg-type]
        self.page: Page = self.context.new_page()
        self.page.set_default_timeout(SLOW)
        self.problems: list[str] = []
        self.page.on("pageerror", lambda error: self.problems.append(str(error)))
        self.page.on("console", lambda said: self.problems.append(said.text) if said.type == "error" else None)
        self.page.on("dialog", lambda dialog: self.problems.append(f"dialog: {dialog.message}"))

    def open(self, served: ServedSession, place: str = "") -> Page:
        self.page.goto(served.address + place)
        return self.page

    def go(self, place: str) -> None:
        self.page.evaluate("place => { location.hash = place }", place)

    def close(self) -> None:
        self.context.close()
        assert self.problems == []


@pytest.fixture
def served() -> Iterator[ServedSession]:
    facts = {"link": [("a", "b"), ("b", "c"), ("c", "d")], "spot": SPOTS}
    with serve(Session(PROGRAM, facts=facts), writable=True, name="rings") as page:
        yield page


@pytest.fixture
def viewer(browser: Browser) -> Iterator[Viewer]:
    found = Viewer(browser, viewport={"width": 1280, "height": 800})
    yield found
    found.close()


def rows(page: Page) -> list[list[str]]:
    page.wait_for_selector("#main table.rows")
    return page.eval_on_selector_all(
        "#main table.rows tbody tr", "rows => rows.map(row => [...row.cells].map(cell => cell.textContent))"
    )


def test_tables_are_live_searched_sorted_and_filtered(served: ServedSession, viewer: Viewer) -> None:
    page = viewer.open(served)
    expect(page).to_have_title("rings · Whence")
    expect(page.locator("#main h1")).to_have_text("reach")
    expect(page.locator(".state")).to_have_text("live")
    expect(page.locator("#main tbody tr")).to_have_count(6)
    assert "token" not in page.url
    served.apply([Update("+", "link", ("d", "e"))])
    expect(page.locator("#main tbody tr")).to_have_count(10)
    expect(page.locator("#main tbody tr.fresh")).to_have_count(4)
    expect(page.locator('nav a[data-view="reach"] .size')).to_have_text("10")
    expect(page.locator(".figure b").first).to_have_text("1")
    page.locator("#main th a", has_text="y").last.click()
    expect(page.locator("th[aria-sort]")).to_have_attribute("aria-sort", "ascending")
    page.locator("#main th a", has_text="y").last.click()
    expect(page.locator("th[aria-sort]")).to_have_attribute("aria-sort", "descending")
    expect(page.locator("#main tbody tr").first).to_have_text("de")
    page.keyboard.press("/")
    page.keyboard.type("a")
    expect(page.locator("#main tbody tr")).to_have_count(4)
    page.keyboard.press("Escape")
    page.get_by_label("Value", exact=True).fill("c")
    page.get_by_label("Column", exact=True).select_option("y")
    page.get_by_role("button", name="Filter").click()
    expect(page.locator("#main tbody tr")).to_have_count(1)
    assert rows(page) == [["a", "c"]]
    # The address says it all.
    other = viewer.context.new_page()
    other.goto(page.url)
    expect(other.locator("#main tbody tr")).to_have_count(1)
    other.close()
    page.get_by_role("button", name="y=c ×").click()
    expect(page.locator("#main tbody tr")).to_have_count(4)


def test_pages_of_many_rows(viewer: Viewer) -> None:
    links = [(f"{each:04}", "x") for each in range(1000)]
    with serve(Session(PROGRAM, facts={"link": links})) as served:
        page = viewer.open(served, "#/view/link")
        expect(page.locator(".pager")).to_contain_text("1–100 of 1,000")
        page.keyboard.press("PageDown")
        expect(page.locator(".pager")).to_contain_text("101–200 of 1,000")
        assert rows(page)[0] == ["0100", "x"]
        page.locator(".pager [title=Last]").click()
        expect(page.locator(".pager")).to_contain_text("901–1,000 of 1,000")
        served.apply([Update("-", "link", row) for row in links[:950]])
        expect(page.locator(".pager")).to_contain_text("1–50 of 50")


def test_a_row_is_explained_in_every_way(served: ServedSession, viewer: Viewer) -> None:
    page = viewer.open(served)
    page.locator("#main tbody tr", has_text="ad").click()
    panel = page.locator("#panel")
    expect(panel.locator(".proof .base")).to_have_count(3)
    expect(panel.locator(".rules dd")).to_have_count(2)
    assert "ask=why" in page.url
    panel.get_by_role("tab", name="Graph").click()
    expect(panel.locator(".picture svg .base")).to_have_count(3)
    panel.get_by_role("tab", name="How").click()
    expect(panel.locator(".how")).to_contain_text('{{link("a", "b"), link("b", "c"), link("c", "d")}}')
    panel.get_by_role("tab", name="Who").click()
    expect(panel.locator(".shares tbody tr")).to_have_count(3)
    expect(panel.locator(".shares")).to_contain_text("33.3 %")
    panel.get_by_role("tab", name="Likely").click()
    panel.get_by_label("Probabilities").fill("link=0.5")
    panel.get_by_role("button", name="Work out").click()
    expect(panel.locator(".big")).to_have_text("12.5 %")
    # From a base fact of the proof to what hangs on it.
    panel.get_by_role("tab", name="Why", exact=True).click()
    panel.locator(".proof .base a").first.click()
    expect(panel.locator(".counts")).to_contain_text("reach")
    expect(panel.locator(".counts")).to_contain_text("−3")
    page.keyboard.press("Escape")
    expect(panel).to_be_hidden()
    # A deep link to an answer.
    other = viewer.context.new_page()
    other.goto(f'{served.url}#/view/reach?ask=why&fact=reach("a", "c")')
    expect(other.locator("#panel .proof .base")).to_have_count(2)
    other.close()


def test_what_if_is_shown_before_it_is_done(served: ServedSession, viewer: Viewer) -> None:
    page = viewer.open(served, "#/view/link")
    page.locator("#main tbody tr", has_text="bc").click()
    panel = page.locator("#panel")
    expect(panel.locator(".changes .gone")).to_have_count(6)
    assert len(served.live.session.relation("reach")) == 6
    panel.get_by_role("button", name="Delete it").click()
    expect(page.locator("#toast")).to_contain_text("Epoch 1")
    expect(page.locator("#main tbody tr")).to_have_count(2)
    assert len(served.live.session.relation("reach")) == 2


def test_why_not_with_a_repair_that_is_applied(served: ServedSession, viewer: Viewer) -> None:
    page = viewer.open(served)
    expect(page.locator("#main tbody tr")).to_have_count(6)
    page.keyboard.press("a")
    panel = page.locator("#panel")
    panel.get_by_label("The fact asked about").fill('reach("d", "a")')
    page.keyboard.press("Enter")
    expect(panel.locator(".attempt").first).to_contain_text("missing")
    repair = panel.locator(".repair", has_text='+ link("d", "a")').first
    repair.get_by_role("button", name="Apply this repair").click()
    expect(page.locator("#main tbody tr")).to_have_count(16)


def test_only_looking(viewer: Viewer) -> None:
    with serve(Session(PROGRAM, facts={"link": [("a", "b")]})) as served:
        page = viewer.open(served, '#/view/link?ask=whatif&fact=link("a", "b")')
        expect(page.locator("#panel .changes .gone")).to_have_count(4)
        expect(page.locator("#panel button.act")).to_have_count(0)


def test_time_travel_and_differences(served: ServedSession, viewer: Viewer) -> None:
    served.apply([Update("-", "link", ("b", "c"))])
    served.apply([Update("+", "link", ("b", "d"))])
    page = viewer.open(served, "#/view/reach")
    expect(page.locator("#main tbody tr")).to_have_count(4)
    page.keyboard.press("[")
    expect(page.locator("#main tbody tr")).to_have_count(2)
    expect(page.locator("body")).to_have_class(re.compile("past"))
    page.locator("#time input").fill("0")
    expect(page.locator("#main tbody tr")).to_have_count(6)
    assert "epoch=0" in page.url
    page.locator("#main tbody tr", has_text="ad").click()
    expect(page.locator("#panel .proof .base")).to_have_count(3)
    expect(page.locator("#panel")).to_contain_text("As of epoch 0")
    expect(page.locator("#panel button.act")).to_have_count(0)
    page.keyboard.press("Escape")
    # What happens now does not move what is looked at.
    served.apply([Update("+", "link", ("x", "y"))])
    expect(page.locator(".figure b").first).to_have_text("3")
    expect(page.locator("#main tbody tr")).to_have_count(6)
    page.get_by_role("button", name="Compare").click()
    expect(page.locator("#main .added")).to_have_count(1)
    expect(page.locator("#main .gone")).to_have_count(2)
    page.get_by_role("button", name="Live").click()
    expect(page.locator("#main tbody tr")).to_have_count(5)


def test_changes_as_they_happen_and_history(served: ServedSession, viewer: Viewer) -> None:
    page = viewer.open(served)
    expect(page.locator(".state")).to_have_text("live")
    page.keyboard.press("c")
    expect(page.locator("#main")).to_contain_text("Nothing has changed")
    served.apply([Update("+", "link", ("d", "e")), Update("-", "link", ("a", "b"))])
    expect(page.locator("#main li.added")).to_have_count(3)
    expect(page.locator("#main li.gone")).to_have_count(3)
    page.keyboard.press("h")
    expect(page.locator(".epochs li")).to_have_count(1)
    page.goto(f"{served.url}#/epochs")
    expect(page.locator("#main")).to_contain_text("Memory by relation")


def test_graphs_are_drawn_and_coloured(served: ServedSession, viewer: Viewer) -> None:
    page = viewer.open(served, "#/view/link?as=graph")
    canvas = page.locator("#main canvas")
    expect(canvas).to_have_attribute("data-nodes", "4")
    expect(canvas).to_have_attribute("data-edges", "3")
    # The places of spots are guessed from their columns; the colours are chosen.
    expect(page.locator("#main select").nth(2)).to_have_value("spot")
    page.get_by_label("colour by").select_option("kind")
    expect(page.locator(".drawing .legend")).to_contain_text("end")
    expect(page.locator(".drawing .legend")).to_contain_text("inner")
    served.apply([Update("+", "link", ("d", "a"))])
    expect(canvas).to_have_attribute("data-edges", "4")
    expect(page.locator(".drawing .legend")).not_to_contain_text("end")
    # The middle of the plan's upper edge is on the link from a to b.
    box = canvas.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 44)
    expect(page.locator(".drawing .hover")).to_have_text('link("a", "b")')
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + 44)
    expect(page.locator("#panel .counts")).to_contain_text("reach")


def test_a_node_leads_to_its_rows(served: ServedSession, viewer: Viewer) -> None:
    page = viewer.open(served, "#/view/link?as=graph")
    canvas = page.locator("#main canvas")
    expect(canvas).to_have_attribute("data-nodes", "4")
    box = canvas.bounding_box()
    assert box is not None
    # The corner of the square of spots that is at 0, 0.
    page.mouse.click(box["x"] + box["width"] / 2 - (box["height"] - 88) / 2, box["y"] + 44)
    expect(page.locator(".chip")).to_have_text("x=a ×")
    expect(page.locator("#main tbody tr")).to_have_count(1)


def test_thousands_of_nodes_stay_fluid(viewer: Viewer) -> None:
    links = [(str(each), str(each // 3)) for each in range(1, 4000)]
    program = load(".decl link(x:symbol, y:symbol) .input link .output link")
    with serve(Session(program, facts={"link": links})) as served:
        page = viewer.open(served, "#/view/link?as=graph")
        expect(page.locator("#main canvas")).to_have_attribute("data-nodes", "4000")
        frames = page.evaluate(
            """() => new Promise(done => {
                let frames = 0;
                const start = performance.now();
                const next = () => {
                    frames += 1;
                    performance.now() - start < 1500 ? requestAnimationFrame(next) : done(frames);
                };
                requestAnimationFrame(next);
            })"""
        )
        assert frames > 3, "the simulation gives frames back"


def test_hostile_values_are_only_text(viewer: Viewer) -> None:
    hostile = [
        "<img src=x onerror=alert(1)>",
        "</script><script>alert(2)</script>",
        "\"'><svg onload=alert(3)>",
        "javascript:alert(4)",
    ]
    facts = {"link": [(one, other) for one in hostile for other in hostile if one != other], "spot": []}
    with serve(Session(PROGRAM, facts=facts), writable=True, name=hostile[0]) as served:
        page = viewer.open(served)
        expect(page.locator("#main tbody tr")).to_have_count(16)
        expect(page.locator(".brand b")).to_have_text(hostile[0])
        expect(page.locator("#main tbody tr td", has_text=hostile[0]).first).to_be_visible()
        for kind in ("why", "graph", "how", "whatif", "whynot"):
            page.locator("#main tbody tr").first.click()
            page.locator("#panel").get_by_role(
                "tab",
                name={"why": "Why", "graph": "Graph", "how": "How", "whatif": "What if", "whynot": "Why not"}[kind],
                exact=True,
            ).click()
            expect(page.locator("#panel .body")).not_to_contain_text("Looking…")
        page.keyboard.press("Escape")
        viewer.go("#/view/link?as=graph")
        expect(page.locator("#main canvas")).to_have_attribute("data-nodes", "4")
        viewer.go(f"#/view/{hostile[0]}?search={hostile[2]}")
        expect(page.locator("#main .problem")).to_be_visible()
        viewer.go("#/view/link?as=changes")
        expect(page.locator("#main")).to_contain_text("Nothing has changed")
        served.apply([Update("-", "link", next(iter(facts["link"])))])
        expect(page.locator("#main li.gone")).to_have_count(1)
        assert page.evaluate("document.querySelectorAll('main img, main script, aside img, aside script').length") == 0
    # What was refused is the console's to say: answers to wrong questions, and the server that is gone.
    viewer.problems[:] = [each for each in viewer.problems if "Failed to load resource" not in each]


def test_a_server_that_dies_and_comes_back(viewer: Viewer) -> None:
    first = serve(Session(PROGRAM, facts={"link": [("a", "b")]}), bind=Bind(port=0, token=TOKEN), name="one").start()
    page = viewer.open(first)
    expect(page.locator("#main tbody tr")).to_have_count(1)
    first.close()
    expect(page.locator(".state")).to_have_text("reconnecting…")
    again = Bind(port=first.port, token=TOKEN)
    facts = {"link": [("a", "b"), ("b", "c")]}
    with serve(Session(PROGRAM, facts=facts), bind=again, name="two") as second:
        expect(page.locator(".state")).to_have_text("live")
        expect(page.locator("#main tbody tr")).to_have_count(3)
        expect(page.locator(".brand b")).to_have_text("two")
        second.apply([Update("+", "link", ("c", "d"))])
        expect(page.locator("#main tbody tr")).to_have_count(6)
    viewer.problems[:] = [
        each for each in viewer.problems if "Failed to load resource" not in each and "ERR_" not in each
    ]


def test_dashboards(browser: Browser, viewer: Viewer) -> None:
    program = load_file(RAILWAY / "program.dl")
    session = Session(program)
    relations, base = program.relations, frozenset(program.base_relations)
    with serve(session, dashboard=read_dashboard(RAILWAY / "program.dashboard.toml", relations, base)) as served:
        stations = [("Bern", 7.4, 46.9), ("Thun", 7.6, 46.8), ("Brig", 8.0, 46.3)]
        tracks = [("Bern", "Thun", 18), ("Thun", "Brig", 40)]
        served.apply([Update("+", "station", row) for row in stations] + [Update("+", "track", row) for row in tracks])
        page = viewer.open(served)
        expect(page.locator("#main h1")).to_have_text("Trains from Bern")
        expect(page.locator(".widget")).to_have_count(7)
        number = page.locator(".widget", has_text="Longest ride").first
        expect(number.locator(".big")).to_contain_text("58")
        expect(page.locator('[data-kind="alarm"] .calm')).to_be_visible()
        expect(page.locator('[data-kind="graph"] canvas')).to_have_attribute("data-nodes", "3")
        served.apply([Update("+", "blocked", ("Thun", "Brig", "rockfall"))])
        expect(page.locator('[data-kind="alarm"]')).to_contain_text("Brig is cut off: rockfall")
        expect(number.locator(".big")).to_contain_text("18")
        expect(page.locator('[data-kind="table"] tbody tr')).to_have_count(1)
        page.locator('[data-kind="alarm"] a', has_text="Brig").last.click()
        expect(page.locator("#panel .proof")).to_contain_text("blocked")


def test_an_action_of_a_widget_puts_a_tuple_in(viewer: Viewer, tmp_path: Path) -> None:
    path = tmp_path / "d.toml"
    path.write_text(
        '[[widget]]\nkind = "table"\nview = "reach"\n'
        'action = { label = "Turn", relation = "link", values = ["{y}", "{x}"] }\n'
    )
    board = read_dashboard(path, PROGRAM.relations, frozenset(PROGRAM.base_relations))
    with serve(Session(PROGRAM, facts={"link": [("a", "b")]}), dashboard=board, writable=True) as served:
        page = viewer.open(served)
        page.get_by_role("button", name="Turn").click()
        expect(page.locator(".widget tbody tr")).to_have_count(4)


def test_a_floor_plan_with_rooms_a_way_and_something_to_do(viewer: Viewer, tmp_path: Path) -> None:
    program = load(
        """.decl desk(name:symbol, x:number, y:number) .input desk
        .decl room(name:symbol, x:number, y:number, w:number, h:number) .input room
        .decl door(a:symbol, b:symbol) .input door
        .decl taken(name:symbol) .input taken
        .decl state(name:symbol, is:symbol) .output state
        state(x, "taken") :- taken(x).
        state(x, "free") :- desk(x, _, _), !taken(x).
        .decl way(a:symbol, b:symbol) .output way
        way(x, y) :- door(x, y), taken(y)."""
    )
    (tmp_path / "floor.svg").write_text(
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 40 20" width="40" height="20"><rect width="40" height="20"/></svg>'
    )
    path = tmp_path / "d.toml"
    path.write_text(
        """
        [[widget]]
        kind = "plan"
        view = "desk"
        key = "name"
        x = "x"
        y = "y"
        height = 400
        width = 3
        rooms = { view = "room", key = "name", x = "x", y = "y", width = "w", height = "h" }
        colour = { view = "state", key = "name", value = "is" }
        colours = { free = "#00ff00", taken = "#ff0000" }
        edges = { view = "door", from = "a", to = "b" }
        path = { view = "way", from = "a", to = "b" }
        image = "floor.svg"
        extent = { x = 0, y = 0, width = 40, height = 20 }
        action = { label = "Sit down", relation = "taken", values = ["{name}"] }
        """
    )
    board = read_dashboard(path, program.relations, frozenset(program.base_relations))
    facts = {
        "desk": [("d1", 20, 10), ("d2", 30, 15)],
        "room": [("lab", 0, 0, 40, 20)],
        "door": [("d1", "d2")],
    }
    with serve(Session(program, facts=facts), dashboard=board, writable=True) as served:
        page = viewer.open(served)
        canvas = page.locator('[data-kind="plan"] canvas')
        expect(canvas).to_have_attribute("data-nodes", "2")
        expect(page.locator(".legend")).to_have_text("is: free")
        served.apply([Update("+", "taken", ("d2",))])
        expect(page.locator(".legend")).to_contain_text("taken")
        expect(canvas).to_have_attribute("data-edges", "2")  # the door, and the way through it
        box = canvas.bounding_box()
        assert box is not None
        # The desk in the middle of the plan.
        page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        expect(page.locator(".choice b")).to_have_text("d1")
        page.get_by_role("button", name="Sit down").click()
        expect(page.locator(".legend")).to_have_text("is: taken")
        assert ("d1",) in served.live.session.relation("taken")


def test_on_a_phone(browser: Browser, served: ServedSession) -> None:
    viewer = Viewer(browser, viewport={"width": 390, "height": 800}, has_touch=True, is_mobile=True)
    page = viewer.open(served)
    expect(page.locator("#main tbody tr")).to_have_count(6)
    expect(page.locator("nav")).not_to_be_in_viewport()
    page.get_by_role("button", name="Views").tap()
    page.locator('nav a[data-view="link"]').tap()
    expect(page.locator("#main h1")).to_have_text("link")
    expect(page.locator("nav")).not_to_be_in_viewport()
    page.locator("#main tbody tr").first.tap()
    panel = page.locator("#panel")
    expect(panel.locator(".counts")).to_be_visible()
    box = panel.bounding_box()
    assert box is not None
    assert box["width"] == 390
    panel.get_by_role("button", name="×").tap()
    expect(panel).to_be_hidden()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    viewer.close()


def test_with_the_keyboard_alone(served: ServedSession, viewer: Viewer) -> None:
    page = viewer.open(served)
    expect(page.locator("#main tbody tr")).to_have_count(6)
    page.keyboard.press("j")
    page.keyboard.press("ArrowDown")
    expect(page.locator("#main tr.selected")).to_have_text("ac")
    page.keyboard.press("Enter")
    expect(page.locator("#panel .proof .base")).to_have_count(2)
    page.keyboard.press("Escape")
    expect(page.locator("#panel")).to_be_hidden()
    page.keyboard.press("g")
    expect(page.locator("#main canvas")).to_be_visible()
    page.keyboard.press("t")
    expect(page.locator("#main table")).to_be_visible()
    page.keyboard.press("?")
    expect(page.locator("dialog")).to_be_visible()
    page.keyboard.press("Enter")
    expect(page.locator("dialog")).to_have_count(0)


def test_dark_as_the_system_or_as_chosen(browser: Browser, served: ServedSession) -> None:
    viewer = Viewer(browser, color_scheme="dark")
    page = viewer.open(served)
    ground = "getComputedStyle(document.body).backgroundColor"
    expect(page.locator("#main tbody tr")).to_have_count(6)
    dark = page.evaluate(ground)
    page.get_by_label("Light or dark").click()
    light = page.evaluate(ground)
    assert (dark, light) == ("rgb(18, 22, 28)", "rgb(255, 255, 255)")
    page.reload()
    expect(page.locator("#main tbody tr")).to_have_count(6)
    assert page.evaluate(ground) == light
    viewer.close()
