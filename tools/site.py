"""Makes the site of the documentation from the same Markdown that is read in the repository, and checks every link of it.

    python tools/site.py build/site

Pages keep their places, so that links between them hold: README.md becomes the first page, and whatever pages link to, programs
and results among it, goes along. A folder that is linked to becomes a page that lists it. Then every address of every page is
looked up: files and headings have to be there, and nothing may be loaded from elsewhere, so that the site works without network.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlsplit

ROOT = Path(__file__).parents[1]
FIRST = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "examples/README.md", "experiments/README.md")
_LINK = re.compile(r"\]\(([^)\s]+)\)|\bsrc=\"([^\"]+)\"")
_CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)
# What to read first, and then what is there to look up.
SECTIONS = {
    "Begin": ("language", "sql", "coming-from-souffle", "shell", "notebooks", "editors", "views"),
    "Keep views current": ("maintenance", "streaming", "connectors", "spark", "profile"),
    "Ask": ("why", "semirings", "reasoning", "page"),
    "More": ("networks", "topologies", "events", "exchange", "sensors", "optimizer", "trees", "building"),
    "Inside": ("architecture",),
}


def stage(source: Path, folder: Path) -> list[str]:
    """Copies pages and what they link to. Returns what is linked to and is not there."""
    missing: list[str] = []
    waiting = [source / name for name in FIRST] + sorted((source / "docs").glob("*.md"))
    done: set[Path] = set()
    while waiting:
        path = waiting.pop()
        if path in done:
            continue
        done.add(path)
        target = folder / path.relative_to(source)
        target.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix != ".md":
            shutil.copyfile(path, target)
            continue
        text = path.read_text(encoding="utf-8")
        for link in ("".join(found) for found in _LINK.findall(_CODE.sub("", text))):
            address = unquote(urldefrag(link).url)
            if not address or urlsplit(link).scheme:
                continue
            linked = (path.parent / address).resolve()
            if linked.is_dir():
                readme = linked / "README.md"
                waiting += [readme] if readme.exists() else _listed(linked, source, folder)
                # Every generator finds a page; not every one finds a folder.
                page = f"{address.rstrip('/')}/{'README.md' if readme.exists() else 'index.md'}"
                text = text.replace(f"]({link})", f"]({page})")
            elif linked.is_file() and linked.is_relative_to(source):
                waiting.append(linked)
            else:
                missing.append(f"{path.relative_to(source)}: {link} is not there")
        target.write_text(text, encoding="utf-8")
    shutil.move(folder / "README.md", folder / "index.md")
    for page in folder.rglob("*.md"):  # the first page has another name now
        text = page.read_text(encoding="utf-8")
        up = "../" * len(page.relative_to(folder).parent.parts)
        page.write_text(text.replace(f"]({up}README.md", f"]({up}index.md"), encoding="utf-8")
    return missing


def _listed(linked: Path, source: Path, folder: Path) -> list[Path]:
    """A page that lists a folder, and the files in it."""
    files = sorted(
        path for path in linked.iterdir() if path.is_file() and path.suffix in (".dl", ".sql", ".py", ".toml")
    )
    target = folder / linked.relative_to(source) / "index.md"
    target.parent.mkdir(parents=True, exist_ok=True)
    lines = [f"# {linked.relative_to(source)}", "", *(f"- [{path.name}]({path.name})" for path in files)]
    target.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return files


def configuration(docs: Path, site: Path, pages: Path) -> str:
    sections = "\n".join(
        f'    {{ "{title}" = [{", ".join(f"{chr(34)}docs/{name}.md{chr(34)}" for name in names)}] }},'
        for title, names in SECTIONS.items()
    )
    listed = {name for names in SECTIONS.values() for name in names}
    left = sorted(path.stem for path in (pages / "docs").glob("*.md") if path.stem not in listed)
    if left:
        raise SystemExit(f"tools/site.py: give {', '.join(left)} a place in SECTIONS")
    return f"""
[project]
site_name = "Whence"
site_description = "Recursive views over changing data, kept exact, and why every row is there."
docs_dir = "{docs}"
site_dir = "{site}"
nav = [
    "index.md",
{sections}
    {{ "Examples" = "examples/README.md" }},
    {{ "Experiments" = "experiments/README.md" }},
    "CHANGELOG.md",
    "CONTRIBUTING.md",
]
[project.theme]
font = false
features = ["navigation.sections", "navigation.top", "search.highlight", "content.code.copy", "toc.follow"]
[[project.theme.palette]]
media = "(prefers-color-scheme: light)"
scheme = "default"
toggle.icon = "lucide/moon"
toggle.name = "Dark"
[[project.theme.palette]]
media = "(prefers-color-scheme: dark)"
scheme = "slate"
toggle.icon = "lucide/sun"
toggle.name = "Light"
"""


class _Addresses(HTMLParser):
    """Where a page leads, what it loads, and the headings it has."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.names: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.names |= {name for key in ("id", "name") if (name := given.get(key))}
        if tag == "a" and (link := given.get("href")):
            self.links.append(link)
        if tag in ("script", "img", "iframe", "source") and (link := given.get("src")):
            self.loaded.append(link)
        if tag == "link" and given.get("rel") not in ("canonical", "next", "prev") and (link := given.get("href")):
            self.loaded.append(link)


def check(site: Path) -> list[str]:
    """What is wrong with the addresses of a site."""
    pages: dict[Path, _Addresses] = {}
    for path in site.rglob("*.html"):
        pages[path] = _Addresses()
        pages[path].feed(path.read_text(encoding="utf-8"))
    problems = []
    for path, page in pages.items():
        shown = path.relative_to(site)
        if shown.name == "404.html":
            continue
        problems += [f"{shown}: loads {link}" for link in page.loaded if urlsplit(link).scheme in ("http", "https")]
        for link in (*page.links, *page.loaded):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc or not (parts.path or parts.fragment):
                continue
            target = path if not parts.path else (path.parent / unquote(parts.path)).resolve()
            target = target / "index.html" if target.is_dir() else target
            if not target.exists():
                problems.append(f"{shown}: {link} is not there")
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].names:
                problems.append(f"{shown}: there is no heading {link}")
    return sorted(set(problems))


def main(site: Path) -> None:
    folder = site.parent / "site-pages"
    for each in (site, folder):
        shutil.rmtree(each, ignore_errors=True)
    missing = stage(ROOT, folder / "pages")
    settings = folder / "zensical.toml"
    settings.write_text(configuration(Path("pages"), Path("site"), folder / "pages"), encoding="utf-8")
    subprocess.run([sys.executable, "-m", "zensical", "build", "-f", settings.name], cwd=folder, check=True)  # noqa: S603
    shutil.move(folder / "site", site)
    problems = [*missing, *check(site)]
    for problem in problems:
        print(problem, file=sys.stderr)
    if problems:
        raise SystemExit(f"{len(problems)} addresses of the site are wrong")
    print(f"{sum(1 for _ in site.rglob('*.html'))} pages in {site}/index.html")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
