"""A page to look at: views as live tables and graphs, why their rows are there, and an API for pages of one's own.

It needs the extra `whence[serve]`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from whence.io.changes import Changes, Epoch, Update
from whence.pipeline.extras import extra
from whence.pipeline.report import EpochReport
from whence.session import Session

with extra("serve"):
    from whence.serve.app import Served
    from whence.serve.dashboards import Dashboard, read_dashboard
    from whence.serve.live import LiveViews
    from whence.serve.reports import applied_to
    from whence.serve.server import Bind, NotSafe, Server

__all__ = ["Bind", "Dashboard", "LiveViews", "NotSafe", "Served", "ServedSession", "Server", "read_dashboard", "serve"]


class ServedSession(Server):
    """A session that is looked at. From now on it is changed here, so that nobody looks at an epoch that is half done."""

    def __init__(self, session: Session, *, bind: Bind, dashboard: Dashboard | None, writable: bool, name: str) -> None:
        self.live = LiveViews(session, epoch=session.epoch, name=name)
        if writable:
            self.live.write = self._write
        super().__init__(Served(self.live, dashboard=dashboard), bind)

    def apply(self, updates: Iterable[Update], now: float | None = None) -> Changes:
        """One epoch, as in `Session.apply`."""
        return applied_to(self.live, Epoch(list(updates), now), checked=False)[1]

    def _write(self, updates: Sequence[Update]) -> EpochReport:
        return applied_to(self.live, Epoch(updates), checked=False)[0]


def serve(
    session: Session,
    *,
    bind: Bind = Bind(port=0),  # noqa: B008 - immutable
    dashboard: Dashboard | None = None,
    writable: bool = False,
    name: str = "session",
) -> ServedSession:
    """Serves a session until it is closed; any free port of this machine will do if none is named.

    >>> from whence import Session, Update, load
    >>> session = Session(load(".decl link(x:symbol, y:symbol) .input link .output link"))
    >>> with serve(session) as page:
    ...     changes = page.apply([Update("+", "link", ("a", "b"))])
    >>> page.address.partition("?")[0] == page.url, len(changes)
    (True, 1)
    """
    return ServedSession(session, bind=bind, dashboard=dashboard, writable=writable, name=name)
