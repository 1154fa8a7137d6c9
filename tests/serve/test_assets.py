"""What others wrote is taken only as it was when we looked at it."""

from __future__ import annotations

from pathlib import Path

import pytest

from whence.serve import assets


def test_something_else_under_the_same_name_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def packed(_npm: str, _package: assets.Package, folder: Path) -> Path:
        (folder / "other.tgz").write_bytes(b"something else")
        return folder / "other.tgz"

    monkeypatch.setattr(assets, "_packed", packed)
    with pytest.raises(ValueError, match="is not what it was"):
        assets.fetch(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_what_is_there_is_not_fetched_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(assets, "_packed", None)
    for each in assets.PACKAGES:
        (tmp_path / each.file).write_bytes(b"")
    assets.fetch(tmp_path)


def test_what_is_missing_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(assets.sys, "prefix", str(tmp_path))
    assert assets.missing().startswith("d3 is not installed")
    assets.installed().mkdir(parents=True)
    (assets.installed() / "d3.min.js").write_bytes(b"")
    assert assets.missing() == ""
