"""Makes docs/building.png: the building's page after a while, with somebody guided to a machine.

python examples/building/picture.py
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from playwright.sync_api import sync_playwright

HERE = Path(__file__).parent
TARGET = HERE.parents[1] / "docs" / "building.png"


def main() -> None:
    with TemporaryDirectory() as folder:
        told = Path(folder) / "told.txt"
        with told.open("w") as file:
            command = [sys.executable, str(HERE / "main.py"), "--port", "0", "--seconds", "0.2"]
            running = subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT)
        try:
            while (found := re.search(r"serving \S+ at (http://\S+)", told.read_text())) is None:
                if running.poll() is not None:
                    sys.exit(told.read_text())
                time.sleep(0.2)
            draw(found[1])
        finally:
            running.terminate()
            running.wait(60)


def draw(address: str) -> None:
    with sync_playwright() as playwright:
        path = shutil.which("chromium") or shutil.which("google-chrome")
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1400, "height": 1000})
        page.goto(address)
        time.sleep(15)  # people come in
        page.get_by_role("row", name=re.compile("^Word")).get_by_role("button", name="Guide me").click()
        page.get_by_role("heading", name="The building").scroll_into_view_if_needed()
        time.sleep(6)  # until it says no more that it was done
        page.screenshot(path=TARGET)
        browser.close()


if __name__ == "__main__":
    main()
