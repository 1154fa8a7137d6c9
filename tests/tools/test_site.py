"""Links of the documentation lead somewhere, in the repository and on the site."""

from __future__ import annotations

from pathlib import Path

from tools.site import ROOT, SECTIONS, check, configuration, stage


def test_every_link_of_every_page_leads_to_a_file(tmp_path: Path) -> None:
    assert stage(ROOT, tmp_path / "pages") == []
    assert (tmp_path / "pages" / "index.md").exists()
    assert configuration(Path("pages"), Path("site"), tmp_path / "pages")


def test_every_page_has_its_place() -> None:
    listed = [name for names in SECTIONS.values() for name in names]
    assert sorted(listed) == sorted(path.stem for path in (ROOT / "docs").glob("*.md"))


def test_what_is_wrong_with_a_site_is_found(tmp_path: Path) -> None:
    page = '<h1 id="top">x</h1><a href="b/">ok</a><a href="#top">ok</a><a href="http://a.example">ok</a>'
    (tmp_path / "index.html").write_text(page)
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "index.html").write_text('<a href="../#top">ok</a>')
    assert check(tmp_path) == []
    (tmp_path / "b" / "index.html").write_text(
        '<a href="../#no">x</a><img src="no.png"><script src="https://cdn.example/x.js"></script>'
    )
    assert check(tmp_path) == [
        "b/index.html: loads https://cdn.example/x.js",
        "b/index.html: no.png is not there",
        "b/index.html: there is no heading ../#no",
    ]
