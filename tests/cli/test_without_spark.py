"""A plain `pip install whence` brings no Spark: what does not need it works, and what does says what to install."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
SITES = [str(EXAMPLES / "sites" / "program.dl"), "-F", str(EXAMPLES / "sites" / "facts")]
FAILURES = [
    str(EXAMPLES / "link_failures" / "program.dl"),
    "--updates",
    str(EXAMPLES / "link_failures" / "updates.jsonl"),
]


@pytest.fixture
def without_spark(tmp_path: Path) -> dict[str, str]:
    """An environment whose Python cannot import it."""
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.modules['pyspark'] = sys.modules['py4j'] = None\n")
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    return {**os.environ, "PYTHONPATH": path, "COLUMNS": "80"}


def run(environment: dict[str, str], *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "whence", *command], env=environment, capture_output=True, text=True, check=False
    )


def test_what_needs_no_spark_does_without(without_spark: dict[str, str], tmp_path: Path) -> None:
    assert "reach" in run(without_spark, "eval", *SITES, "-D", "-").stdout
    state = tmp_path / "state"
    done = run(
        without_spark, "run", *FAILURES, "--no-spark", "-q", "--state", str(state), "--changes", str(tmp_path / "c")
    )
    assert done.returncode == 0, done.stderr
    assert run(without_spark, "state", "ls", str(state)).returncode == 0
    assert "by direct" in run(without_spark, "why", *SITES, 'reach("lab", "web")').stdout


def test_what_needs_it_says_what_to_install(without_spark: dict[str, str]) -> None:
    done = run(without_spark, "run", *FAILURES)
    assert done.returncode == 2
    assert "pip install 'whence[spark]'" in done.stderr
    assert "--no-spark" in done.stderr
    done = run(without_spark, "eval", *SITES, "-D", "-", "--backend", "spark")
    assert (done.returncode, "pip install 'whence[spark]'" in done.stderr) == (2, True)
    assert "Traceback" not in done.stderr
    code = "import whence.spark as s\ntry: s.evaluate\nexcept ImportError as error: print(error)"
    done = subprocess.run([sys.executable, "-c", code], env=without_spark, capture_output=True, text=True, check=False)
    assert done.stdout == "pyspark is not installed: pip install 'whence[spark]'\n"
