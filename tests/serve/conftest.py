from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, sync_playwright

from whence.serve.assets import missing


@pytest.fixture(scope="module")  # while it is there, a loop runs in this thread that others could not have
def browser() -> Iterator[Browser]:
    """Chromium, or Chrome, as it is on the PATH."""
    path = shutil.which("chromium") or shutil.which("google-chrome")
    if path is None:
        pytest.skip("there is no Chromium: make chromium installs it")
    if what := missing():
        pytest.skip(what)
    with sync_playwright() as playwright:
        # Containers that run as root have no place for a sandbox.
        launched = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-dev-shm-usage"])
        yield launched
        launched.close()
