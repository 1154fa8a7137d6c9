"""The server: the page, and the API behind it, which OpenAPI describes at /api/openapi.json."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, FastAPI, Header, HTTPException, Query, Request
from fastapi.responses import FileResponse, JSONResponse, Response, StreamingResponse
from pydantic import BaseModel, Field
from starlette.staticfiles import StaticFiles

import whence
from whence.io.changes import Update
from whence.io.updates import DeadLetter, Schema, parse_record
from whence.limits import RunawayError
from whence.provenance.base import parse_fact
from whence.serve.answers import Answers, CannotAnswer, Kind, Question
from whence.serve.apart import Apart, TooBusy, TooLate
from whence.serve.as_json import EpochJson, Row, columns_to_json, epoch_to_json, rows_to_json
from whence.serve.assets import installed, missing
from whence.serve.dashboards import Dashboard
from whence.serve.events import Events, TooManyViewers, status
from whence.serve.filters import parse_filter
from whence.serve.guard import Access, Guard
from whence.serve.history import NotRetained
from whence.serve.image import Wanted
from whence.serve.live import LiveViews
from whence.serve.series import series
from whence.serve.shapes import Shapes, shapes_of

_MOST_ROWS = 20_000
_DESCRIPTION = """Views that stay current, what changes in them, and why their rows are there.

Rows are `{"fact": …, "cells": […]}`; questions are asked with the text of `fact`. Every request needs the token, as
`Authorization: Bearer TOKEN`."""

Epoch = Annotated[int | None, Query(description="As of this epoch; the last if not given.", ge=0)]


class Page(BaseModel):
    """Rows of a view after an epoch; `total` is how many pass the filter."""

    epoch: int
    total: int
    offset: int
    rows: list[Row]


class Difference(BaseModel):
    """What turned a view as it was into what it became; `total` counts both sides, of which some rows are shown."""

    added: list[Row]
    gone: list[Row]
    total: int


class Change(BaseModel):
    """An update, by the text of a fact, or with a relation and a tuple as in the records of `whence run`."""

    op: str = Field(pattern=r"^[+-]$")
    fact: str | None = None
    relation: str | None = None
    tuple: list[Any] | None = None


class Updates(BaseModel):
    """They are applied at once, as one epoch."""

    updates: list[Change] = Field(max_length=10_000)


class Applied(BaseModel):
    """The epoch that the updates became, and how many rows of output relations it changed."""

    epoch: int
    inserted: int
    deleted: int
    no_ops: int


class Served:
    """What the handlers share."""

    def __init__(self, live: LiveViews, *, dashboard: Dashboard | None = None, seconds: float = 10.0) -> None:
        self.live = live
        self.shapes: Shapes = shapes_of(live.program)
        self.dashboard = dashboard or Dashboard()
        self.events = Events(live)
        self.answers = Answers(live, Apart(seconds=seconds))
        self.schema = Schema.of(live.program)


def make_app(served: Served, access: Access) -> FastAPI:
    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        served.events.start()
        yield
        served.events.close()

    app = FastAPI(
        title="Whence",
        version=whence.__version__,
        description=_DESCRIPTION,
        lifespan=lifespan,
        openapi_url="/api/openapi.json",
        docs_url=None,  # they would load scripts from elsewhere
        redoc_url=None,
    )
    app.include_router(_views(served), prefix="/api", tags=["views"])
    app.include_router(_happenings(served), prefix="/api", tags=["changes"])
    app.include_router(_questions(served), prefix="/api", tags=["questions"])
    app.include_router(_updates(served), prefix="/api", tags=["updates"])
    app.include_router(_dashboard(served), prefix="/api", tags=["dashboard"])
    for error, code in ((NotRetained, 410), (TooLate, 504), (TooBusy, 503), (TooManyViewers, 503), (ValueError, 400)):
        app.add_exception_handler(error, _saying(code))
    static = Path(str(files(__package__) / "static"))
    app.mount("/lib", StaticFiles(directory=installed(), check_dir=False))
    app.mount("/", StaticFiles(directory=static, html=True))
    app.add_middleware(Guard, access=access)
    return app


def _saying(code: int) -> Any:
    async def say(_: Request, error: Exception) -> Response:
        return JSONResponse({"error": str(error)}, status_code=code)

    return say


def _views(served: Served) -> APIRouter:
    router, live = APIRouter(), served.live

    @router.get("/about")
    def about() -> dict[str, object]:
        """What is served: the program, its views, and what a viewer may do."""
        return {
            "name": live.name,
            "version": whence.__version__,
            "instance": served.events.instance,
            "writable": live.write is not None,
            "started": live.started,
            "program": live.program.source.segments[0].file.text if live.program.source.segments else "",
            "views": [_view(served, name) for name in live.relations],
            "dashboard": bool(served.dashboard.widgets),
            "seconds": served.answers.apart.seconds,
            "undrawn": missing(),
            **status(live),
        }

    @router.get("/views/{view}")
    def page(
        view: str,
        *,
        epoch: Epoch = None,
        sort: Annotated[str, Query(description="A column, with - before it for the other direction.")] = "",
        where: Annotated[list[str] | None, Query(description="Conditions such as cost<=3 or name~ab.")] = None,
        search: Annotated[str, Query(description="A text that some column contains.")] = "",
        offset: Annotated[int, Query(ge=0)] = 0,
        limit: Annotated[int, Query(ge=0, le=_MOST_ROWS)] = 100,
    ) -> Page:
        """Rows of a view."""
        fields = _relation(live, view).fields
        names = [field.name for field in fields]
        column = sort.removeprefix("-")
        if column and column not in names:
            raise ValueError(f"{view} has no column {column}; it has {', '.join(names)}")
        wanted = Wanted(
            sort=names.index(column) if column else 0,
            descending=sort.startswith("-"),
            filter=parse_filter(where or [], search, fields),
            offset=offset,
            limit=limit,
        )
        shown, found = live.page(view, wanted, epoch)
        return Page(epoch=shown, total=found.total, offset=offset, rows=rows_to_json(view, found.rows))

    @router.get("/views/{view}/difference")
    def difference(
        view: str,
        *,
        start: Annotated[int, Query(alias="from", ge=0)],
        end: Annotated[int, Query(alias="to", ge=0)],
        limit: Annotated[int, Query(ge=0, le=_MOST_ROWS)] = 500,
    ) -> Difference:
        """What changed in a view between two epochs."""
        _relation(live, view)
        found = live.history.difference(view, start, end)
        added, gone = (rows_to_json(view, sorted(each, key=repr)[:limit]) for each in (found.added, found.gone))
        return Difference(added=added, gone=gone, total=len(found))

    @router.get("/views/{view}/series")
    def over_time(
        view: str,
        *,
        value: Annotated[str, Query(description="A column of numbers; the number of rows if not given.")] = "",
        by: Annotated[str, Query(description="A column: a line for each of its values.")] = "",
        last: Annotated[int, Query(ge=1, le=2_000)] = 300,
    ) -> dict[str, object]:
        """How a view, or numbers in it, went over the last epochs."""
        return series(live, _relation(live, view), value, by, last)

    return router


def _relation(live: LiveViews, view: str) -> Any:
    try:
        return live.relation(view)
    except ValueError as error:
        raise HTTPException(404, str(error)) from None


def _view(served: Served, name: str) -> Mapping[str, object]:
    live = served.live
    relation = live.relations[name]
    graph, place = served.shapes.graphs.get(name), served.shapes.places.get(name)
    return {
        "name": name,
        "columns": columns_to_json(relation),
        "base": name in live.base,
        "output": name in live.outputs,
        "size": live.sizes[name],
        "graph": graph and {"from": graph.source, "to": graph.target, "declared": graph.is_declared},
        "place": place
        and {"key": place.key, "x": place.x, "y": place.y, "on": place.on, "declared": place.is_declared},
    }


def _happenings(served: Served) -> APIRouter:
    router, live = APIRouter(), served.live

    @router.get("/status")
    def how_it_goes() -> dict[str, object]:
        """Sizes, lag, memory, and the time that maintenance took by phase."""
        with live.lock:
            work = live.session.stats()
        return {
            **status(live),
            "viewers": served.events.viewers,
            "bytes": work["bytes"],
            "value_bytes": work["value_bytes"],
            "work": work["seconds"],
            "derivations": work["derivations"],
        }

    @router.get("/epochs")
    def epochs(last: Annotated[int, Query(ge=1, le=2_000)] = 120) -> dict[str, object]:
        """The last epochs, and the sizes of all views after each of them."""
        past = live.history.newest(last)
        listed: list[EpochJson] = [epoch_to_json(each) for each in past]
        sizes = {name: [each.sizes.get(name, 0) for each in past] for name in live.relations}
        return {"epochs": listed, "sizes": sizes, "oldest": live.history.oldest, "epoch": live.epoch}

    @router.get("/dead-letters")
    def dead_letters() -> dict[str, object]:
        """The last records that could not be applied, and why."""
        found = [
            {"reason": each.reason, "record": each.record, "where": each.where, "at": each.at} for each in live.letters
        ]
        return {"count": live.letter_count, "letters": found[::-1]}

    @router.get("/events", response_class=StreamingResponse)
    async def events(
        views: Annotated[str, Query(description="Views whose changed rows are wanted, with commas between them.")] = "",
        since: Annotated[
            str, Query(description="The identity of the last event that is known, as INSTANCE-EPOCH.")
        ] = "",
        last_event_id: Annotated[str, Header()] = "",
    ) -> StreamingResponse:
        """Server-sent events: `epochs` as they happen, and `reset` for a viewer who was away too long."""
        names = tuple(name for name in views.split(",") if name in live.relations)
        return StreamingResponse(served.events.stream(names, last_event_id or since), media_type="text/event-stream")

    return router


def _questions(served: Served) -> APIRouter:
    router = APIRouter()

    @router.get("/questions/{kind}")
    def ask(
        kind: Kind,
        *,
        fact: Annotated[str, Query(description='As it is written in a program: link("a", "b").', max_length=100_000)],
        epoch: Epoch = None,
        chance: Annotated[list[str] | None, Query(description="Probabilities: link=0.9, or link=@column.")] = None,
        among: Annotated[list[str] | None, Query(description="Base relations that may be responsible.")] = None,
        facts: Annotated[int, Query(description="Of a graph, at most.", ge=1, le=20_000)] = 2_000,
    ) -> Response:
        """Why a fact holds, its whole graph, how it comes about, who is responsible, how likely it is, what would change if it
        went or came, or why it does not hold.
        """
        try:
            found = served.answers.ask(Question(kind, fact, epoch, tuple(chance or ()), tuple(among or ()), facts))
        except CannotAnswer as error:
            raise HTTPException(422, str(error)) from None
        return Response(found, media_type="application/json")

    return router


def _updates(served: Served) -> APIRouter:
    router, live = APIRouter(), served.live

    @router.post("/updates")
    def update(given: Updates) -> Applied:
        """Applies updates as one epoch, where viewers may write (`--writable`)."""
        if live.write is None:
            raise HTTPException(403, "this page is for looking only: start it with --writable to change base facts")
        updates = [_update(served, each) for each in given.updates]
        try:
            report = live.write(updates)
        except RunawayError as error:
            raise HTTPException(409, str(error)) from None
        return Applied(epoch=report.epoch, inserted=report.inserted, deleted=report.deleted, no_ops=report.no_ops)

    return router


def _update(served: Served, change: Change) -> Update:
    if change.fact is not None:
        fact = parse_fact(change.fact, served.live.program)
        if fact.relation not in served.live.base:
            raise ValueError(f"{fact.relation} is derived by rules: only base relations take updates")
        return Update(change.op, *fact)
    record = {"op": change.op, "relation": change.relation, "tuple": change.tuple}
    found = parse_record(json.dumps(record).encode(), 2, served.schema)
    if isinstance(found, DeadLetter):
        raise ValueError(found.reason)  # noqa: TRY004 - of a value
    assert isinstance(found, Update)
    return found


def _dashboard(served: Served) -> APIRouter:
    router = APIRouter()

    @router.get("/dashboard")
    def dashboard() -> dict[str, object]:
        """The widgets of the dashboard, as they are declared."""
        return {"title": served.dashboard.title, "widgets": list(served.dashboard.widgets)}

    @router.get("/dashboard/images/{name}")
    def image(name: str) -> FileResponse:
        """A picture that a widget shows."""
        if name not in served.dashboard.images:
            raise HTTPException(404, f"there is no image {name}")
        return FileResponse(served.dashboard.images[name])

    return router
