"""The harness writes down what it measured: medians, spreads, what was cut off, claims."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from experiments.harness import Claim, Experiment, run

ROOT = Path(__file__).parents[2]


def _measure(scheme: str, point: float, seed: int) -> dict[str, float]:
    if scheme == "slow" and point > 1:
        while True:
            time.sleep(0.01)
    return {"bytes": point * seed * (10 if scheme == "big" else 1)}


TOY = Experiment(
    name="toy",
    title="A toy",
    question="How many?",
    schemes=("big", "small", "slow"),
    across="links",
    points=(1, 2, 3),
    metrics={"bytes": "kB"},
    measure=_measure,
    claims=[
        Claim("ten times more", lambda results: results.ratio("big", "small", "bytes")),
        Claim("it ends", lambda results: results.ratio("slow", "small", "bytes")),
        Claim("at first", lambda results: results.ratio("slow", "small", "bytes", 1)),
    ],
    cut_off=0.2,
)


def test_tables_have_medians_spreads_and_what_was_cut_off(tmp_path: Path) -> None:
    run(TOY, ["--seeds", "3", "--no-plot", "--out", str(tmp_path)])
    page = (tmp_path / "toy.md").read_text(encoding="utf-8")
    assert [line for line in page.splitlines() if line.startswith("|")] == [
        "| links | big | small | slow |",
        "| --- | --- | --- | --- |",
        "| 1 | 20 (10-30) | 2 (1-3) | 2 (1-3) |",
        "| 2 | 40 (20-60) | 4 (2-6) | cut off |",
        "| 3 | 60 (30-90) | 6 (3-9) | cut off |",
        "| claim | measured |",
        "| --- | --- |",
        "| ten times more | 10x |",
        "| it ends | cut off |",
        "| at first | 1x |",
    ]


def test_every_measurement_is_kept(tmp_path: Path) -> None:
    run(TOY, ["--seeds", "2", "--points", "2", "--no-plot", "--out", str(tmp_path)])
    assert json.loads((tmp_path / "toy.json").read_text(encoding="utf-8"))["measured"] == [
        {"scheme": "big", "point": 2.0, "cut_off": False, "seeds": [{"bytes": 20.0}, {"bytes": 40.0}]},
        {"scheme": "small", "point": 2.0, "cut_off": False, "seeds": [{"bytes": 2.0}, {"bytes": 4.0}]},
        {"scheme": "slow", "point": 2.0, "cut_off": True, "seeds": []},
    ]


def test_a_scheme_that_was_cut_off_is_not_tried_at_larger_points(tmp_path: Path) -> None:
    tried: list[tuple[str, float]] = []

    def measure(scheme: str, point: float, seed: int) -> dict[str, float]:
        tried.append((scheme, point))
        return _measure(scheme, point, seed)

    run(replace(TOY, measure=measure), ["--seeds", "1", "--no-plot", "--out", str(tmp_path)])
    assert ("slow", 2) in tried
    assert ("slow", 3) not in tried


def test_a_metric_that_was_not_promised_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="toy measures messages, not bytes"):
        run(replace(TOY, metrics={"messages": ""}), ["--seeds", "1", "--no-plot", "--out", str(tmp_path)])


def test_a_plot_without_matplotlib_is_refused_before_anything_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("experiments.harness.find_spec", lambda name: None)
    with pytest.raises(SystemExit):
        run(TOY, ["--out", str(tmp_path)])
    assert "--no-plot does without" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_an_experiment_runs(tmp_path: Path) -> None:
    script = ROOT / "experiments" / "strategies.py"
    options = ["--seeds", "1", "--points", "75", "--no-plot", "--out", str(tmp_path)]
    done = subprocess.run([sys.executable, script, *options], capture_output=True, text=True, check=False, timeout=300)
    assert (done.returncode, done.stderr) == (0, "")
    assert "| 75 | " in (tmp_path / "strategies.md").read_text(encoding="utf-8")
