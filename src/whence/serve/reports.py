"""Epochs of a session that no pipeline keeps, reported as one would."""

from __future__ import annotations

import time

from whence.io.changes import Changes, Epoch
from whence.pipeline.report import EpochReport
from whence.serve.live import LiveViews


def applied_to(live: LiveViews, epoch: Epoch, *, checked: bool = True) -> tuple[EpochReport, Changes]:
    """Applies an epoch to the session that is served, and says so to its viewers."""
    with live.lock:
        started = time.perf_counter()
        changes = live.session.apply(epoch.updates, epoch.now, checked=checked)
        seconds = time.perf_counter() - started
        report = EpochReport(
            epoch=live.epoch + 1,
            updates=len(epoch.updates),
            no_ops=changes.ignored,
            inserted=sum(len(changes.inserted.get(name, ())) for name in live.outputs),
            deleted=sum(len(changes.deleted.get(name, ())) for name in live.outputs),
            rounds=live.session.last_epoch["rounds"],
            seconds=seconds,
            tuples={name: live.sizes[name] for name in live.outputs},
            state_bytes=0,
        )
        live.applied(report, changes)
        return report, changes
