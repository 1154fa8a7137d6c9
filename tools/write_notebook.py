"""Runs the cells of notebooks in IPython and keeps what they show: `python tools/write_notebook.py NOTEBOOK …`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output


def outputs_of(shell: InteractiveShell, source: str, count: int) -> list[dict[str, Any]]:
    """What running a cell shows, in the notebook's own form. Raises what the cell raises."""
    with capture_output(display=False) as captured:
        result = shell.run_cell(source, store_history=True)
    result.raise_error()
    streams = (("stdout", captured.stdout), ("stderr", captured.stderr))
    found: list[dict[str, Any]] = [
        {"output_type": "stream", "name": name, "text": text.splitlines(keepends=True)}
        for name, text in streams
        if text
    ]
    if result.result is not None:
        data, metadata = shell.display_formatter.format(result.result)
        kind = "text/html" if "text/html" in data else "text/plain"
        shown = {kind: data[kind].splitlines(keepends=True)}
        found = [each for each in found if each["name"] != "stdout"]  # the prompt's own print of the result
        found.append({"output_type": "execute_result", "execution_count": count, "data": shown, "metadata": metadata})
    return found


def executed(notebook: dict[str, Any]) -> dict[str, Any]:
    """The notebook with its outputs made anew."""
    shell = InteractiveShell()
    try:
        cells, count = [], 0
        for cell in notebook["cells"]:
            if cell["cell_type"] == "code":
                count += 1
                made = outputs_of(shell, "".join(cell["source"]), count)
                cell = {**cell, "execution_count": count, "outputs": made}  # noqa: PLW2901 - the cell with its outputs
            cells.append(cell)
    finally:
        shell.history_manager.end_session()
    return {**notebook, "cells": cells}


if __name__ == "__main__":
    for name in sys.argv[1:]:
        path = Path(name)
        made = executed(json.loads(path.read_text(encoding="utf-8")))
        path.write_text(json.dumps(made, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
