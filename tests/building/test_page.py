"""The building in a browser: the plan, and the way to a machine that is asked for."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from playwright.sync_api import expect, sync_playwright

FOLDER = Path(__file__).parents[2] / "examples" / "building"


def test_guide_me(tmp_path: Path) -> None:
    path = shutil.which("chromium") or shutil.which("google-chrome")
    if path is None:
        pytest.skip("there is no Chromium: make chromium installs it")
    told = tmp_path / "told.txt"
    with told.open("w") as file:
        command = [sys.executable, str(FOLDER / "main.py"), "--port", "0", "--seconds", "0.3", "--seed", "1"]
        running = subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT)
    try:
        end = time.monotonic() + 120
        while (found := re.search(r"serving \S+ at (http://\S+)", told.read_text())) is None:
            if "is not installed" in told.read_text():
                pytest.skip(told.read_text())
            assert running.poll() is None, told.read_text()
            assert time.monotonic() < end, told.read_text()
            time.sleep(0.2)
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-dev-shm-usage"])
            page = browser.new_page(viewport={"width": 1400, "height": 1300})
            problems: list[str] = []
            page.on("pageerror", lambda error: problems.append(str(error)))
            page.goto(found[1])
            expect(page.get_by_role("heading", name="The building")).to_be_visible(timeout=30_000)
            word = page.get_by_role("row", name=re.compile("^Word"))
            word.get_by_role("button", name="Guide me").click(timeout=30_000)
            nearest = page.locator("section, article, div").filter(has_text="Nearest free machine").last
            expect(nearest.get_by_text(re.compile(r"^R\d\d\d-\d$"))).to_be_visible(timeout=30_000)
            assert problems == []
            browser.close()
    finally:
        running.terminate()
        running.wait(60)
